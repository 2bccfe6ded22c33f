"""The page of retraining: how new rows differ from known ones, what was decided, and why.

One page for one night, or for several nights in a row.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.drift import Conflict, FieldDrift, NightDetails, SliceReport
from tasks.algorithms.personal_data import without_personal_data
from tasks.pages import figures, wording
from tasks.pages.sections import Chart
from tasks.pages.style import STYLE
from tasks.platform.page_style import fill

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ title }}</title>
<style>{{ style|safe }}
.lede{overflow-wrap:anywhere}section>.card{margin-top:12px}section>h3{margin-top:22px}
.card+.key{margin-top:18px}.word{white-space:nowrap}.scroll td pre{min-width:14em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:12.5px/1.5 var(--mono)}</style>
</head>
<body>
<header><div>
<p class="eyebrow">EachPrompt<span>retrain</span></p>
<h1>{{ title }}</h1>
</div></header>
<main>
{% for night in nights %}
<section><h2>{{ night.title }} <span class="pill {{ night.kind }}">{{ night.verdict }}</span></h2>
<p class="lede">{{ night.message }}</p>
{% if night.approval %}
<div class="card"><p>Say yes, or eachprompt reject with the same options:</p>\
<pre>{% for word in night.approval.split(" ") %}<span class="word">{{ word }}</span>\
{{ "" if loop.last else " " }}{% endfor %}</pre></div>
{% endif %}
{% if night.conflicts %}
<h3>Other answers than before</h3>
<div class="card scroll"><table><thead><tr><th>file</th><th>question</th><th>known answer</th>\
<th>answer of the file</th></tr></thead><tbody>
{% for one in night.conflicts %}<tr><th>{{ one.file }}</th><td><pre>{{ one.prompt }}</pre></td>\
<td><pre>{{ one.known|join("\n") }}</pre></td><td><pre>{{ one.new }}</pre></td></tr>{% endfor %}
</tbody></table></div>
{% endif %}
{% if night.charts %}
<p class="key drawn"><span><i style="background:{{ neutral }}"></i>known problems</span>\
<span><i style="background:{{ tuned }}"></i>new problems, with their share</span></p>
<div class="grid{{ " two" if night.charts|length > 1 }}">
{% for chart in night.charts %}
<figure class="card"><figcaption><h3>{{ chart.title }}<b>{{ chart.numbers }}</b></h3>\
<p>{{ chart.note }}</p></figcaption>
{{ chart.svg|safe }}</figure>
{% endfor %}
</div>
{% endif %}
{% if night.rates %}
<div class="card scroll"><table><thead><tr><th>problems</th>\
<th class="n">pass rate of the released model</th></tr></thead><tbody>
{% for name, rate in night.rates %}<tr><th>{{ name }}</th>\
<td class="n">{{ rate }}</td></tr>{% endfor %}
</tbody></table></div>
{% endif %}
{% if night.slices %}
<h3>Its phase of RL, by domain and language</h3>
<div class="card scroll"><table><thead><tr><th>slice</th>{% for name in measures %}\
<th class="n">{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for name, cells in night.slices %}<tr><th>{{ name }}</th>\
{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endif %}
{% if night.examples %}
<details class="card"><summary>New problems <span>with most unknown words</span></summary>
<table><tbody>{% for text in night.examples %}<tr><td><pre>{{ text }}</pre></td></tr>{% endfor %}\
</tbody></table></details>
{% endif %}
{% if night.refused %}
<details class="card"><summary>Left out <span>one example of every reason</span></summary>
<table><tbody>{% for reason, example in night.refused %}<tr><th>{{ reason }}</th>\
<td><pre>{{ example }}</pre></td></tr>{% endfor %}</tbody></table></details>
{% endif %}
</section>
{% endfor %}
</main>
<footer>PSI is the population stability index: below 0.1 a distribution is stable, from 0.25 it \
has changed clearly. What one of twenty samples of the known rows exceeds counts as chance.</footer>
</body>
</html>
"""

NIGHT_PAGE = ".night.html"
"""End of the name of a night's own page; its message ends with the location."""
MEASURES = {
    "k3, nats": ("k3", ".1e"),
    "reward": ("reward", ".3f"),
    "tokens of a response": ("length_tokens", ".1f"),
    "cut off": ("truncated_share", ".1%"),
    "without a verdict": ("abstained_share", ".1%"),
}
"""Heading -> measure of a slice and its format: means over the steps of the night."""
VERDICTS = {
    "Promoted": ("promoted", "yes"),
    "Refused": ("refused by the gate", "no"),
    "Not promoted": ("not promoted", "no"),
}
"""First words of a message -> text and colour; all others trained nothing."""
_QUESTION = re.compile(
    r" Say yes or no: (?P<approval>eachprompt approve .*), "
    r"or eachprompt reject with the same options\."
)
"""In a message with held files; the names of files may hold any words."""


@dataclass(frozen=True, slots=True)
class NightSection:
    """What the page shows of one night."""

    title: str
    verdict: str
    kind: str
    message: str
    approval: str
    """Command that says yes to held files; '' if there is none."""
    charts: tuple[Chart, ...]
    rates: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    conflicts: tuple[Conflict, ...]
    slices: tuple[tuple[str, tuple[str, ...]], ...]


def execution_of(message: str) -> str:
    """Return the execution whose page a message ends with; '' if it names none."""
    *_, last = message.split("/")
    return last.removesuffix(NIGHT_PAGE) if last.endswith(NIGHT_PAGE) else ""


def verdict_of(message: str) -> tuple[str, str]:
    """Return the verdict that a message speaks of, and its colour."""
    for words, verdict in VERDICTS.items():
        if message.startswith(words):
            return verdict
    return ("needs people", "no") if "needs people" in message else ("nothing trained", "plain")


def section(title: str, message: str, night: NightDetails | None) -> NightSection:
    """Describe one night.

    Args:
        title: its heading, unique on the page.
        message: the decision in a paragraph.
        night: None if no row was read.
    """
    verdict, kind = verdict_of(message)
    question = _QUESTION.search(message)
    number = "".join(letter for letter in title.casefold() if letter.isalnum())
    fields = night.drift.fields if night else ()
    return NightSection(
        title=title,
        verdict=verdict,
        kind=kind,
        message=_QUESTION.sub("", message),
        approval=question["approval"] if question else "",
        charts=tuple(_chart(field, f"{number}-{field.field}") for field in fields),
        rates=tuple((name, wording.percent(rate)) for name, rate in night.pass_rates.items())
        if night
        else (),
        examples=tuple(map(without_personal_data, night.drift.examples)) if night else (),
        refused=tuple(sorted(night.refused.items())) if night else (),
        conflicts=tuple(map(_masked, night.conflicts)) if night else (),
        slices=tuple(map(_slice_row, night.slices)) if night else (),
    )


def _slice_row(one: SliceReport) -> tuple[str, tuple[str, ...]]:
    """Write a slice and its measures, in the order of MEASURES; '' for one that no step has."""
    cells = (
        format(one.means[name], form) if name in one.means else ""
        for name, form in MEASURES.values()
    )
    return f"{one.kind} {one.value}", tuple(cells)


def _masked(conflict: Conflict) -> Conflict:
    return Conflict(
        file=conflict.file,
        prompt=without_personal_data(conflict.prompt),
        known=tuple(map(without_personal_data, conflict.known)),
        new=without_personal_data(conflict.new),
    )


def render(title: str, nights: Sequence[NightSection]) -> bytes:
    """Write one HTML file without external resources."""
    page = fill(
        TEMPLATE,
        title=title,
        nights=nights,
        measures=tuple(MEASURES),
        style=STYLE,
        neutral=figures.NEUTRAL,
        tuned=figures.TUNED,
    )
    return page.encode()


def _chart(field: FieldDrift, name: str) -> Chart:
    notes = [f"{word}: {', '.join(values[:5])}" for word, values in _value_lists(field) if values]
    return Chart(
        title=field.field,
        note="; ".join(notes) or "no new and no vanished value",
        numbers=f"PSI {field.psi:.2f}, {field.degree}",
        svg=figures.shares_figure(field, name),
    )


def _value_lists(field: FieldDrift) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("new", field.new), ("vanished", field.vanished)
