"""The page of a run: self-contained, complete, and honest about what it does not have."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from data_schemas.reports import Baseline, EchoScore, GateDecision
from tasks.errors import DataError
from tasks.pages.inputs import RunInputs
from tasks.pages.page import headline, write_report
from tasks.pages.sections import length_table, rule_lines, suite_table
from tasks.pages.wording import NBSP


class _Page(HTMLParser):
    """Collects what a browser would load, the visible text and the ids."""

    def __init__(self, html):
        super().__init__()
        self.links, self.ids, self.tags, self.words = [], [], [], []
        self._silent = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._silent = tag == "style"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag):
        self._silent = False

    def handle_data(self, data):
        if not self._silent and data.strip():
            self.words.append(" ".join(data.split()))

    @property
    def text(self):
        return " | ".join(self.words)


@pytest.fixture
def page(html):
    return _Page(html)


def test_the_page_loads_nothing(html, page):
    assert [] == [link for link in page.links if not link.startswith("#")]
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "@import" not in html
    assert "url(http" not in html


def test_every_reference_inside_a_plot_hits_its_own_id(html, page):
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {part.split(")")[0] for part in html.split("url(#")[1:]} <= set(page.ids)


def test_every_plot_is_well_formed_and_names_itself(html):
    plots = [f"<svg{part.split('</svg>')[0]}</svg>" for part in html.split("<svg")[1:]]

    assert 2 + 11 + 4 == len(
        plots
    )  # checkpoint progression and gains, eleven charts of RL, two per tuning
    for plot in plots:
        assert ElementTree.fromstring(plot).get("aria-label")


def test_the_header_says_what_came_out(page):
    assert "Not released" in page.words
    assert (
        "rl/two solves 43.4 % of the held-out problems, 14.2 points more than the merged model "
        "before RL." in page.text
    )
    assert "2 min 37 s" in page.text
    assert "1 of 4 from the cache" in page.text


def test_all_numbers_of_the_run_are_on_the_page(page):
    for expected in (
        "11.2 %",  # base in the checkpoint progression
        "+21.0",  # maths gained
        "failed | open text lost 6.0 points",
        "zh-TW",
        "What is 3 < 4?",  # a held-out prompt of a fine-tuning, and its samples
        "epoch 3, chosen | <think>epoch 3",
        "epoch 3: 0.717",  # validation loss at the chosen checkpoint: 1.7 / 3 + 0.15
        "1,319",
        "dropped: prompt too long",
        "quarantined: bad gold",
        "settings changed: learning_rate 0.001 -> 0.0005",
        "same code, settings and inputs as execution a1b2 on 2026-11-21",
        "sqlite:////run/mlflow.db",
    ):
        assert expected in page.text, expected


def test_levels_of_difficulty_are_rows_of_the_table_by_source(run):
    first = run.progression[0]
    (maths, code), rest = first.suites[1:3], first.suites[:1]
    levels = (
        maths.model_copy(update={"suite": "level:math_train/4"}),
        code.model_copy(update={"suite": "level:math_train/5"}),
    )

    table = suite_table([first.model_copy(update={"suites": (*rest, *levels)})])

    assert ["math train/4", "math train/5"] == [
        row.label for group in table.groups if "difficulty" in group.title for row in group.rows
    ]


def test_baselines_are_columns_behind_those_of_models(run):
    lookup = Baseline(name="lookup", accuracy={"all": 0.125})
    last = run.progression[-1].model_copy(update={"baselines": (lookup,)})

    table = suite_table([*run.progression[:-1], last])

    assert [*(one.model for one in run.progression), "lookup"] == list(table.models)
    assert "12.5\N{NO-BREAK SPACE}%" == table.groups[0].rows[0].cells[-1].text
    assert "\N{EN DASH}" == table.groups[1].rows[0].cells[-1].text


@pytest.mark.slow
def test_a_model_that_has_the_weights_of_another_is_named(run, tmp_path):
    last = run.progression[-1].model_copy(update={"same_as": "merged"})
    html = write_report(replace(run, progression=(*run.progression[:-1], last)), tmp_path)

    text = _Page(html.read_text()).text
    assert f"{last.model} has the weights of merged: its answers are taken over." in text


def test_the_use_of_generated_tokens_is_one_chart_with_its_legend(page):
    text = " ".join(page.words)

    assert "Use of tokens" in text
    assert re.search(r"trained \d+\.\d% replaced by a refill \d+\.\d%", text)


def test_settings_are_complete_and_the_changed_ones_named(page):
    assert "Changed from the default | 1 value | base_model" in page.text
    assert "loss.high_entropy_share" in page.words
    assert "held_out_per_suite" in page.words


def test_text_from_outside_is_escaped(html):
    assert "/models/<mine>" not in html
    assert "/models/&lt;mine&gt;" in html


def test_a_run_on_gpus_says_what_it_reserved_and_what_all_stages_behind_it_did(run, tmp_path):
    times = {"curate": 3600.0, "rl/one": 7200.0}
    stages = tuple(replace(row, gpu_seconds=times.get(row.stage, 0.0)) for row in run.stages)

    page = _Page(write_report(replace(run, stages=stages), tmp_path).read_text())

    words = " ".join(page.words).replace(NBSP, " ")
    assert "GPU hours 3.0 for all stages behind it; of this execution 2.0 GPU hours" in words


def test_a_run_without_evaluation_or_rl_shows_only_what_it_has(run, tmp_path):
    bare = RunInputs(
        workflow="retrain",
        execution=run.execution,
        settings=run.settings,
        stages=run.stages,
    )

    page = _Page(write_report(bare, tmp_path).read_text())

    assert "No model was evaluated in this run." in page.words
    assert "No gate in this run" in page.words
    assert {"svg", "figure"}.isdisjoint(page.tags)
    assert ["Stages", "Settings"] == [
        word for word in page.words if word in ("Stages", "Settings", "Fine-tuning", "Where?")
    ]


def test_a_metric_no_phase_reported_is_left_out(run, tmp_path):
    (tmp_path / "one" / "steps.jsonl").write_text(
        '{"step":1,"policy_version":1,"metrics":{"reward/mean":0.25}}\n'
    )
    short = RunInputs(
        workflow="rl",
        execution=run.execution,
        settings=run.settings,
        stages=(),
        phases={"rl/one": tmp_path / "one"},
    )

    page = _Page(write_report(short, tmp_path).read_text())

    assert "0.250 \N{RIGHTWARDS ARROW} 0.250" in page.text
    assert 1 == page.tags.count("svg")


def test_a_broken_step_report_is_named_with_its_line(run, tmp_path):
    with (tmp_path / "two" / "steps.jsonl").open("a") as stream:
        stream.write('{"step":0,"policy_version":1,"metrics":{}}\n')

    with pytest.raises(DataError, match=r"two/steps.jsonl, line 41: step: .*greater than"):
        write_report(run, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_a_released_run_says_so(run, tmp_path):
    inputs = RunInputs(
        workflow="post_training",
        execution=run.execution,
        settings=run.settings,
        stages=(),
        gate=GateDecision(released=True, reasons=("passed: all",), comparisons=()),
    )

    assert "Released" in _Page(write_report(inputs, tmp_path).read_text()).words


def test_a_headline_says_what_the_phase_before_solved_more(run):
    *before, last, best = run.progression
    order = [*before, best, last]  # 35.2 % after 43.4 %

    assert headline(order, run.gains).endswith(
        " rl/two solved 8.2 points more; whether that is chance was not tested."
    )
    assert "solved" not in headline(run.progression, run.gains)


def test_a_family_at_its_floor_is_named_and_counts_in_no_headline(run, tmp_path):
    maths = next(one for one in run.progression[-1].suites if one.suite.startswith("domain:"))
    echo = EchoScore(
        suite=maths.suite,
        text="last number",
        score=0.4,
        accuracy=0.4,
        problems=20,
        difference=0.01,
        low=-0.05,
        high=0.07,
    )
    last = run.progression[-1].model_copy(update={"echoes": (echo,)})
    progression = (*run.progression[:-1], last)
    name = maths.suite.removeprefix("domain:").replace("_", " ")

    text = _Page(write_report(replace(run, progression=progression), tmp_path).read_text()).text

    assert f"of the held-out problems without {name}" in headline(progression, run.gains)
    cells = [name, "last number", f"40.0{NBSP}%", "+1.0", "\u22125.0 to +7.0"]
    assert " | ".join(cells).replace(NBSP, " ") in text.replace(NBSP, " ")


def test_a_release_without_a_shown_gain_of_rl_is_not_green(run, tmp_path):
    gate = GateDecision(released=True, reasons=("passed: all",), comparisons=())
    unclear = run.gains[0].model_copy(update={"difference": 0.01, "low": -0.01, "high": 0.03})
    inputs = replace(run, gate=gate, gains=(unclear, *run.gains[1:]))

    html = write_report(inputs, tmp_path / "page").read_text()

    assert '<span class="pill unclear">Released. That RL gained is not shown</span>' in html


def test_the_headline_does_not_claim_what_the_interval_does_not_show(run):
    overall = run.gains[0]
    unclear = overall.model_copy(update={"difference": 0.012, "low": -0.01, "high": 0.03})
    worse = overall.model_copy(update={"difference": -0.02, "low": -0.04, "high": -0.01})

    assert headline(run.progression, [unclear]).endswith(
        "against the merged model before RL nothing is certain (+1.2 points)."
    )
    assert headline(run.progression, [worse]).endswith(
        "2.0 points fewer than the merged model before RL."
    )
    assert headline(run.progression, []).endswith(
        "solves 43.4 % of the held-out problems.".replace(" %", "\N{NO-BREAK SPACE}%")
    )


def test_the_rules_that_refused_a_model_stand_before_those_that_it_passed():
    lines = rule_lines(("passed: a", "FAILED: b", "passed: c", "waits", "FAILED: d"))

    assert ["b", "d", "a", "c", "waits"] == [line.text for line in lines]


def test_a_mode_of_thinking_has_its_length_beside_the_others(run, tmp_path):
    last = run.progression[-1]
    score = last.suites[0]
    modes = tuple(
        score.model_copy(update={"suite": f"source:{name}", "mean_tokens": tokens})
        for name, tokens in (("sample_slow", 41.26), ("sample_fast", 9.0))
    )
    thinking = last.model_copy(update={"suites": (*last.suites, *modes)})

    table = length_table([thinking])

    assert table is not None
    (group,) = (one for one in table.groups if one.title == "by source")
    assert [("sample slow", "41.3"), ("sample fast", "9.0")] == [
        (row.label, row.cells[0].text) for row in group.rows
    ]
    html = write_report(replace(run, progression=(thinking,)), tmp_path).read_text()
    assert "How long are the responses?" in html


def test_reports_without_lengths_have_no_table_of_them(run):
    assert length_table([]) is None
    bare = run.progression[-1]
    suites = tuple(one.model_copy(update={"mean_tokens": None}) for one in bare.suites)
    assert length_table([bare.model_copy(update={"suites": suites})]) is None
