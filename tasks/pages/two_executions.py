"""Compare two executions on one page: settings, models, families, tokens, answers side by side.

eachprompt compare-runs BEFORE AFTER
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.artifacts import StoreRef
from data_schemas.faults import did_you_mean
from data_schemas.reports import EvaluationReport
from data_schemas.rows import HELD_OUT, Problem
from data_schemas.statements import Input, Output, Statement
from tasks.algorithms.floors import at_floor, overall_score
from tasks.errors import SettingsError
from tasks.formats.progression import read_progression
from tasks.pages import wording
from tasks.pages.before_after import BeforeAfter, before_and_after
from tasks.pages.collect import CANDIDATE, COMPARED
from tasks.pages.executions import write_index
from tasks.pages.explanation import flat, value_text
from tasks.pages.inputs import suite
from tasks.pages.navigation import INDEX, TO_INDEX, with_navigation
from tasks.pages.sections import SuiteTable, suite_table
from tasks.pages.style import STYLE
from tasks.pages.template import MACROS
from tasks.platform.page_style import fill
from tasks.provenance.lineage.origins import object_uri
from tasks.provenance.lineage.signatures import pages
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import chain, load_executions
from tasks.store.interface import store_at
from tasks.store.objects import localise

BEFORE, AFTER = "before", "after"
TOKENS = {
    "generated_tokens": "generated",
    "trained_tokens": "trained",
    "saved_tokens": "not generated, as predicted",
}
"""Facts of grading, fine-tuning and RL, and what they are called."""
NONE = "\N{EN DASH}"
PAGE = (
    MACROS
    + """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ before }} and {{ after }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
{% macro rows(heads, lines) %}
<div class="card scroll"><table>
<thead><tr><th>{{ heads[0] }}</th>{% for head in heads[1:] %}<th class="n">{{ head }}</th>\
{% endfor %}</tr></thead>
<tbody>{% for line in lines %}
<tr><th>{{ line[0] }}</th>{% for cell in line[1:] %}<td class="n">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% endmacro %}
<header><div>
<p class="eyebrow">EachPrompt<span>before: {{ before }}</span><span>after: {{ after }}</span></p>
<h1>{{ headline }}</h1>
</div></header>
<main>
<section><h2>What was changed</h2>
<p class="lede">Settings of the stages that made both, where they differ; a stage that only one of \
them ran is one line.</p>
{% if settings %}
<div class="card scroll"><table>
<thead><tr><th>setting</th><th>stages</th><th>before</th><th>after</th></tr></thead>
<tbody>{% for line in settings %}
<tr><th>{{ line[1] }}</th><td>{{ line[0] }}</td><td><code>{{ line[2] }}</code></td>\
<td><code>{{ line[3] }}</code></td></tr>
{% endfor %}</tbody></table></div>
{% else %}<p>No setting differs.</p>{% endif %}
</section>
{% if ladder %}
<section><h2>Which is better?</h2>
<p class="lede">Share of held-out responses that solve their problem. {{ same_problems }}</p>
{{ rows(["model", "before", "interval", "after", "interval", "points"], ladder) }}
</section>
{% endif %}
{% if families %}
<section><h2>Where?</h2>
<p class="lede">Share of the held-out problems that the last model of each execution solves.</p>
{{ suite_table(families) }}
</section>
{% endif %}
{% if tokens %}
<section><h2>What did it cost?</h2>
<p class="lede">Tokens, as the stages counted them.</p>
{{ rows(["stage", "tokens", "before", "after"], tokens) }}
</section>
{% endif %}
{% if answers %}
<section><h2>What do they answer?</h2>
<p class="lede">{{ answers|length }} problems that both held out, drawn by their ids, with the \
first answer of the last model of each.</p>
{{ answer_cards(answers) }}
</section>
{% endif %}
</main>
<footer>This page is one file: it loads nothing and can be kept or mailed as it is.</footer>
</body>
</html>
"""
)


@dataclass(frozen=True, slots=True)
class Side:
    """One execution: the statements it made or rests on, by stage."""

    execution: str
    statements: Mapping[str, Statement]
    progression: tuple[EvaluationReport, ...]
    """Empty if nothing was compared."""
    last: Path | None
    """Evaluation of the last model."""
    problems: tuple[Problem, ...]
    """Held out."""


def read_side(store: StoreRef, execution: str) -> Side:
    """Read one execution, with the stages that it took from the cache.

    Raises:
        SettingsError: the store has no such execution.
    """
    records = load_executions(store.uri, execution)
    if not records:
        names = {name.split("/")[0] for name in store_at(f"{store.uri}/executions").list_files()}
        hint = did_you_mean(execution, sorted(names)) or f"{store.uri}/{INDEX} lists them"
        raise SettingsError(f"{store.uri} has no execution {execution!r}; {hint}")
    result = chain(store.uri, [record.statement for record in records])
    # Of a model that was retrained there are several of a stage: the latest counts.
    stages = {one.stage: one for one in result.values()}
    stages |= {record.stage: result[record.statement] for record in records}
    compared, curated = stages.get(COMPARED), stages.get("curate")
    candidates = [one for one in compared.inputs if one.role == CANDIDATE] if compared else []
    return Side(
        execution,
        stages,
        read_progression(_folder(store, compared.outputs[0])) if compared else (),
        _folder(store, candidates[0]) if candidates else None,
        tuple(read_table(_folder(store, curated.outputs[0]) / HELD_OUT, Problem))
        if curated
        else (),
    )


def write_page(store: StoreRef, before: Side, after: Side) -> str:
    """Write the page beside the reports, link it in the index, and return its location."""
    sides = before, after
    shared = len({one.id for one in before.problems} & {one.id for one in after.problems})
    page = fill(
        PAGE,
        style=STYLE,
        before=before.execution,
        after=after.execution,
        headline=_headline(before, after),
        settings=_settings(before, after),
        ladder=list(_ladder(before, after)),
        same_problems=f"Before, {len(before.problems):,} problems were held out, after, "
        f"{len(after.problems):,}; {shared:,} are in both.",
        families=_families(sides),
        tokens=list(_tokens(before, after)),
        answers=_answers(before, after),
    )
    reports = {f"report of {side.execution}": f"{side.execution}.html" for side in sides}
    links = {text: name for text, name in reports.items() if _is_there(store, name)}
    name = f"reports/{after.execution}-against-{before.execution}.html"
    place = pages.write_page(store.uri, name, with_navigation(page, TO_INDEX | links))
    write_index(store.uri)
    return place


def _is_there(store: StoreRef, name: str) -> bool:
    return name in store_at(f"{store.uri}/reports").list_files()


def _folder(store: StoreRef, item: Input | Output) -> Path:
    place = object_uri(store.uri, item.uri, item.digest)
    return localise(place, item.digest, workplace(store))


def _headline(before: Side, after: Side) -> str:
    scores = [overall_score(one.progression[-1]) for one in (before, after) if one.progression]
    totals = [score for score in scores if score is not None]
    if len(totals) < 2:
        return "One of the two has no model that was compared."
    solved = [wording.percent(score.accuracy) for score in totals]
    points = wording.signed_points(totals[1].accuracy - totals[0].accuracy)
    floors = [{echo.suite for echo in at_floor(one.progression[-1])} for one in (before, after)]
    if floors[0] != floors[1]:
        return "The two are above a text that does no task in different families."
    return f"{solved[1]} of the held-out problems are solved, before {solved[0]} ({points} points)."


def _settings(before: Side, after: Side) -> list[tuple[str, str, str, str]]:
    """List what differs: the stages, the setting, both values."""
    results: dict[tuple[str, str, str], list[str]] = {}
    for stage in [*before.statements, *(after.statements.keys() - before.statements.keys())]:
        for change in _changes(stage, before, after):
            results.setdefault(change, []).append(stage)
    return [(", ".join(stages), *change) for change, stages in results.items()]


def _changes(stage: str, before: Side, after: Side) -> Iterator[tuple[str, str, str]]:
    if stage not in after.statements or stage not in before.statements:
        is_old = stage in before.statements
        yield "", "ran" if is_old else NONE, NONE if is_old else "ran"
        return
    old, new = (flat(json.loads(side.statements[stage].settings)) for side in (before, after))
    for name in [*old, *(new.keys() - old.keys())]:
        if old.get(name) != new.get(name):
            yield name, value_text(old, name), value_text(new, name)


def _ladder(before: Side, after: Side) -> Iterator[tuple[str, ...]]:
    sides = [{one.model: suite(one, "all") for one in side.progression} for side in (before, after)]
    for model in dict.fromkeys([*sides[0], *sides[1]]):
        scores = [side.get(model) for side in sides]
        cells = [
            text
            for score in scores
            for text in (
                (wording.percent(score.accuracy), wording.interval(score)) if score else (NONE, "")
            )
        ]
        old, new = scores
        points = wording.signed_points(new.accuracy - old.accuracy) if old and new else ""
        yield model, *cells, points


def _families(sides: Sequence[Side]) -> SuiteTable | None:
    reports = [
        side.progression[-1].model_copy(update={"model": name})
        for name, side in zip((BEFORE, AFTER), sides, strict=True)
        if side.progression
    ]
    return suite_table(reports)


def _tokens(before: Side, after: Side) -> Iterator[tuple[str, str, str, str]]:
    for stage in dict.fromkeys([*before.statements, *after.statements]):
        for fact, text in TOKENS.items():
            results = [
                side.statements[stage].facts.get(fact) if stage in side.statements else None
                for side in (before, after)
            ]
            if any(results):
                cells = [wording.count(int(one)) if one is not None else NONE for one in results]
                yield stage, text, cells[0], cells[1]


def _answers(before: Side, after: Side) -> tuple[BeforeAfter, ...]:
    if before.last is None or after.last is None:
        return ()
    return before_and_after(before.last, after.last, after.problems, (BEFORE, AFTER))


def compare(before: str, after: str, store: StoreRef) -> str:
    """Write the page of two executions of a store and return its place."""
    return write_page(store, *(read_side(store, name) for name in (before, after)))
