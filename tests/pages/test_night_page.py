"""The page of a night: decision, shares, examples; text of rows is text."""

import re

import pytest

from data_schemas.drift import Conflict, Drift, FieldDrift, NightDetails, ValueShare
from data_schemas.reports import StepReport
from tasks.formats.nights import slices_of_steps
from tasks.pages.night_page import execution_of, render, section
from tasks.retraining.ruling import question

LANGUAGE = FieldDrift(
    field="language",
    psi=0.31,
    chance=0.05,
    unknown=0.5,
    new=("vi",),
    vanished=(),
    shares=(ValueShare(value="en", known=1.0, new=0.5), ValueShare(value="vi", known=0.0, new=0.5)),
)
NIGHT = NightDetails(
    drift=Drift(
        known=100, new=40, fields=(LANGUAGE,), unknown_words=0.25, examples=("<b>Giày</b> $5 $",)
    ),
    refused={"not_json": "shop/rows-7: <script>"},
    pass_rates={"new": 0.25, "replayed": 0.5},
    conflicts=(
        Conflict(file="p.csv", prompt="Call 0812-3456-7890: 3 + 4?", known=("seven", "7"), new="8"),
    ),
)


def test_a_night_shows_decision_shares_pass_rates_and_examples():
    html = render("Retraining", [section("Monday", "Promoted: version 2.", NIGHT)]).decode()

    for shown in (
        "promoted",
        "Promoted: version 2.",
        "PSI 0.31, large",
        "new: vi",
        "25.0",
        "Known and new problems by language",
        "&lt;b&gt;Giày&lt;/b&gt; $5 $",
        "shop/rows-7: &lt;script&gt;",
        "<th>p.csv</th><td><pre>Call [phone]: 3 + 4?</pre></td>",
        "<td><pre>seven\n7</pre></td><td><pre>8</pre></td>",
    ):
        assert shown in html
    assert "<script" not in html


def test_what_people_may_answer_stands_on_a_line_that_can_be_copied():
    file = "a, or eachprompt reject b.csv"
    asks = question((file,), "inbox", "runs")
    message = f"Not retrained; needs people: {file}.{asks} Report: r.html"
    html = render("Retraining", [section("Monday", message, NIGHT)]).decode()

    named = f"eachprompt approve &#39;{file}&#39; --inbox inbox --store runs --by NAME"
    words = re.sub(r"</?span[^>]*>", "", html)  # none of which is broken at its hyphens
    assert f"<pre>{named} --because &#34;...&#34;</pre>" in words
    assert '<span class="word">--store</span>' in html
    assert f"Not retrained; needs people: {file}. Report: r.html</p>" in html


@pytest.mark.parametrize(
    ("message", "verdict", "kind"),
    [
        ("Promoted: version 2", "promoted", "yes"),
        ("Refused by the release gate: a model", "refused by the gate", "no"),
        ("Not promoted: another model", "not promoted", "no"),
        ("Not retrained: nothing new in x.", "nothing trained", "plain"),
        ("Not retrained: 3 rows; needs people: a.csv", "needs people", "no"),
    ],
)
def test_the_verdict_is_that_of_the_message(message, verdict, kind):
    shown = section("Monday", message, None)

    assert (verdict, kind) == (shown.verdict, shown.kind)
    assert ((), (), ()) == (shown.charts, shown.rates, shown.refused)


def test_nights_on_one_page_have_figures_of_their_own():
    nights = [section(name, "Promoted", NIGHT) for name in ("Night 1", "Night 2")]
    html = render("Five nights", nights).decode()

    assert 'id="night1-language-' in html
    assert 'id="night2-language-' in html


def test_a_value_with_the_sign_of_mathematics_is_drawn_as_text():
    odd = LANGUAGE.model_copy(update={"shares": (ValueShare(value="$5 $a^", known=1.0, new=1.0),)})
    drift = NIGHT.drift.model_copy(update={"fields": (odd,)})

    html = render("x", [section("n", "m", NIGHT.model_copy(update={"drift": drift}))]).decode()

    assert "$5 $a^" in html


def test_a_value_in_any_script_is_drawn_as_text():
    odd = LANGUAGE.model_copy(update={"shares": (ValueShare(value="หนังสือ", known=1.0, new=1.0),)})
    drift = NIGHT.drift.model_copy(update={"fields": (odd,)})

    html = render("x", [section("n", "m", NIGHT.model_copy(update={"drift": drift}))]).decode()

    assert "หนังสือ" in html


@pytest.mark.parametrize(
    ("message", "execution"),
    [
        ("Promoted: version 2. Drift: s3://shop/runs/reports/20261122-1.night.html", "20261122-1"),
        ("Promoted: version 2. Report: runs/reports/20261122-1.html", ""),
        ("Not retrained: nothing new in inbox.", ""),
    ],
)
def test_a_message_names_the_execution_whose_rows_were_read(message, execution):
    assert execution == execution_of(message)


def test_a_night_shows_its_phase_of_rl_by_domain_and_language():
    steps = [
        StepReport(step=n, policy_version=n, metrics=metrics)
        for n, metrics in enumerate(
            [
                {"slices/language/th/k3": 0.002, "slices/language/th/truncated_share": 0.5},
                {"slices/language/th/truncated_share": 0.25, "reward/mean": 1.0},
            ],
            start=1,
        )
    ]
    night = NIGHT.model_copy(update={"slices": slices_of_steps(steps)})

    page = render("t", [section("x", "Promoted: ok", night)]).decode()

    assert '<th>language th</th><td class="n">2.0e-03</td><td class="n"></td>' in page
    assert "37.5%" in page
    assert "by domain and language" not in render("t", [section("x", "Promoted", NIGHT)]).decode()
