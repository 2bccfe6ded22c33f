"""The page of a study: what is shown first, then every arm with its interval, then every number."""

from collections.abc import Sequence

from data_schemas.study import StudyEvidence
from tasks.lab.study.report import conditions, gains_of, number, rows_of
from tasks.pages import figures
from tasks.pages.style import STYLE
from tasks.platform.page_style import fill

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ title }}</title>
<style>{{ style|safe }}section>.card{margin-top:12px}.card+.lede{margin-top:14px}
.lede code,li{overflow-wrap:anywhere}
td small{display:block;white-space:nowrap;color:var(--muted)}td:nth-child(2){min-width:17em}</style>
</head>
<body>
{% macro breakable(text) %}{% for part in text.split("/") %}{{ "" if loop.first else "/" }}\
{% if not loop.first %}<wbr>{% endif %}{{ part }}{% endfor %}{% endmacro %}
{% macro table(header, rows) %}
<div class="card scroll"><table><thead><tr>{% for name in header %}<th>{{ name }}</th>\
{% endfor %}</tr></thead><tbody>
{% for row in rows %}
<tr>{% for cell in row %}{% if loop.first %}<th>{{ breakable(cell) }}</th>{% else %}
<td>{% set value, interval = halves(cell) %}{{ value }}\
{% if interval %}<small>{{ interval }}</small>{% endif %}</td>{% endif %}{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
<header><div>
<p class="eyebrow">EachPrompt<span>study</span><span>{{ name }}</span></p>
<h1>{{ title }}</h1>
<dl class="tiles">
{% for label, value, note in tiles %}
<div><dt>{{ label }}</dt><dd>{{ value }}<small>{{ note }}</small></dd></div>
{% endfor %}
</dl>
</div></header>
<main>
<section><h2>What is shown</h2>
<p class="lede">A difference is shown if its interval excludes 0 after Holm's correction; the \
conditions stand below the arms.</p>
{% if shown %}<ul>{% for line in shown %}<li>{{ line }}</li>{% endfor %}</ul>
{% else %}<p class="lede">No difference is shown.</p>{% endif %}
{% if charts %}
<div class="grid{{ " two" if charts|length > 1 }}">
{% for title, note, svg in charts %}
<figure class="card"><figcaption><h3>{{ title }}</h3><p>{{ note }}</p></figcaption>
{{ svg|safe }}</figure>
{% endfor %}
</div>
{% endif %}
</section>
<section><h2>The arms</h2>{{ table(*arms) }}<p class="lede">\
{% for part in conditions.split("`") %}{% if loop.index0 % 2 %}<code>{{ part }}</code>{% else %}\
{{ part }}{% endif %}{% endfor %}</p></section>
{% if gains[1] %}<section><h2>Gains of training</h2>
<details class="card"><summary>{{ gains[1]|length }} gains</summary>{{ table(*gains) }}</details>\
</section>{% endif %}
<section><h2>Every number</h2>
<details class="card"><summary>{{ every|length }} numbers</summary>
{{ table(("", "value", "seeds", "problems", "note"), every) }}</details></section>
</main>
<footer>This page is one file: it loads nothing and can be kept or mailed as it is.</footer>
</body>
</html>
"""
_DIFFERENCES = ("equal tokens", "equal steps", "equal CPU seconds")
"""What a difference of accuracies may be at; the first that the arms have is drawn."""


def page(evidence: StudyEvidence) -> str:
    """Fill in the page of a study."""
    every = [
        (name, number(cell, name), str(cell.runs), str(cell.problems or ""), cell.note)
        for name, cell in evidence.cells.items()
    ]
    return fill(
        TEMPLATE,
        style=STYLE,
        title=evidence.title,
        name=evidence.name,
        tiles=_tiles(evidence),
        shown=_claims(evidence),
        charts=_charts(evidence),
        arms=rows_of(evidence),
        gains=_gains(evidence),
        conditions=conditions(evidence),
        every=every,
        halves=_halves,
    )


def _gains(evidence: StudyEvidence) -> tuple[list[str], list[tuple[str, ...]]]:
    header, rows = gains_of(evidence)
    return header, [(arm, _described(what, evidence), *rest) for arm, what, *rest in rows]


def _described(what: str, evidence: StudyEvidence) -> str:
    """Write `gain in maths/merged/rl/two` as `gain in maths from merged to rl/two`."""
    kind, _, pair = what.partition("/")
    for first in evidence.checkpoints:
        last = pair.removeprefix(f"{first}/")
        if last != pair and last in evidence.checkpoints:
            return f"{kind} from {first} to {last}"
    return what


def _halves(cell: str) -> tuple[str, str]:
    """Divide `76.2 % [72.6, 79.8]` into the value and its interval."""
    value, bracket, rest = cell.partition(" [")
    return (value, f"[{rest}") if bracket and rest.endswith("]") else (cell, "")


def _tiles(evidence: StudyEvidence) -> list[tuple[str, str, str]]:
    problems = max((cell.problems for cell in evidence.cells.values()), default=0)
    seeds = len(evidence.seeds)
    return [
        ("Arms", str(len(evidence.variants)), "variants of settings"),
        ("Seeds", str(seeds), "nothing is shown by one" if seeds == 1 else "of each arm"),
        ("Problems", f"{problems:,}" if problems else "none", "held out, the same for all"),
        ("Measured", evidence.date, f"at {evidence.commit}"),
    ]


def _claims(evidence: StudyEvidence) -> list[str]:
    """Say each difference of accuracies that is shown, those against an arm first."""
    lines = [
        (cell.value, f"{_claim(key, evidence)}: {number(cell, key)} points")
        for key, cell in evidence.cells.items()
        if cell.shown and cell.value is not None and _is_accuracy(key)
    ]
    return [line for _, line in sorted(lines)]


def _claim(key: str, evidence: StudyEvidence) -> str:
    arm, _, what = key.partition("/")
    words = _described(what, evidence)
    return f"{arm} at {what}" if words == what else f"{arm}, {words}"


def _is_accuracy(key: str) -> bool:
    """Tell differences of arms, and what an arm gained in training, from other numbers."""
    return key.partition("/")[2].startswith((*_DIFFERENCES, "gain/"))


def _charts(evidence: StudyEvidence) -> list[tuple[str, str, str]]:
    """Draw accuracy by arm, and differences to the arm that each is compared with."""
    charts: list[tuple[str, str, str]] = []
    last = _last_checkpoint(evidence)
    if last:
        arms, names = list(evidence.variants), list(evidence.checkpoints)
        keys = [(arm, f"{arm}/accuracy/{last}") for arm in arms]
        if len(arms) == 1:
            keys = [(name, f"{arms[0]}/accuracy/{name}") for name in names]
        rows = _rows(keys, evidence)
        place = f"at {last}" if len(arms) > 1 else "by checkpoint"
        note = f"held-out problems solved {place}, with 95 % intervals"
        charts.append(("Accuracy", note, figures.intervals_figure(rows, "accuracy", "solved, %")))
    for what in _DIFFERENCES:
        keys = [
            (arm, f"{arm} minus {other}/{what}" + (f"/{last}" if what == "equal steps" else ""))
            for arm, other in evidence.against.items()
            if arm != other
        ]
        if rows := _rows(keys, evidence):
            note = f"at {what}, to the arm that each is compared with; an interval that holds 0 "
            note += "shows nothing"
            drawn = figures.intervals_figure(rows, "difference", "points", zero=True)
            charts.append(("Differences", note, drawn))
            break
    return charts


def _last_checkpoint(evidence: StudyEvidence) -> str:
    names = [
        name
        for name in evidence.checkpoints
        if any(f"{arm}/accuracy/{name}" in evidence.cells for arm in evidence.variants)
    ]
    return names[-1] if names else ""


def _rows(
    keys: Sequence[tuple[str, str]], evidence: StudyEvidence
) -> list[tuple[str, tuple[float, float, float]]]:
    rows: list[tuple[str, tuple[float, float, float]]] = []
    for label, key in keys:
        cell = evidence.cells.get(key)
        if cell and cell.value is not None and cell.low is not None and cell.high is not None:
            rows.append((label, (cell.value, cell.low, cell.high)))
    return rows
