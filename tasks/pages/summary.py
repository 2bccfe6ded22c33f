"""The terminal summary at the end of a run."""

from collections.abc import Sequence

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from data_schemas.reports import Comparison, EvaluationReport, GateDecision
from tasks.pages import wording
from tasks.pages.inputs import RunInputs, suite
from tasks.pages.page import Pill, headline, verdict
from tasks.pages.precisions import PrecisionTable, precision_tables
from tasks.pages.sections import rule_lines
from tasks.pages.stage_rows import StageRow

_BAR_CELLS = 20
"""Cells of a model that solves everything."""
_WIDE = 100
"""Columns from which on there is room for the numbers of rows."""
_WHY = 30
"""Fewest columns for why a stage ran."""
_DITTO = "\N{DITTO MARK}"


def show(inputs: RunInputs, console: Console) -> None:
    """Print stages, checkpoint progression, gains, the gate's decision and all locations.

    Locations and commands are never folded: they are copied.
    """
    console.print(summary(inputs, console.width))
    if inputs.places:
        console.print()
    width = max(map(len, inputs.places), default=0) + 2
    for name, place in inputs.places.items():
        line = Text.assemble((f"{name:{width}}", "dim"), place)
        console.print(line, soft_wrap=True, no_wrap=True, crop=False)


def summary(inputs: RunInputs, columns: int) -> Group:
    """Lay out the summary; parts that a run does not have are omitted."""
    parts: list[RenderableType] = []
    if inputs.stages:
        parts += [_stage_table(inputs.stages, columns), Text()]
    tables: list[RenderableType] = []
    if inputs.progression:
        tables.append(_progression_table(inputs.progression))
    if inputs.gains:
        tables.append(_gains_table(inputs.gains))
    if tables:
        parts += [Columns(tables, padding=(0, 4)), Text()]
    for precision in precision_tables(inputs.precisions):
        parts += [_precision_table(precision), Text(precision.layers, style="dim"), Text()]
    if inputs.progression:
        parts.append(Text(headline(inputs.progression, inputs.gains), style="bold"))
    if inputs.gate is not None:
        parts += _verdict_lines(verdict(inputs), inputs.gate)
    return Group(*parts)


def _stage_table(stages: Sequence[StageRow], columns: int) -> Table:
    ran = sum(row.executed for row in stages)
    spent = wording.duration(sum(row.seconds for row in stages if row.executed))
    table = _table(f"Stages: {ran} ran in {spent}, {len(stages) - ran} from the cache")
    table.add_column("stage", no_wrap=True)
    table.add_column("", no_wrap=True)
    count_columns = ("rows in", "rows out") if columns >= _WIDE else ()
    for name in ("time", *count_columns):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", style="dim", min_width=_WHY)
    previous = ""
    for row in stages:
        table.add_row(
            row.stage,
            Text("ran", style="green") if row.executed else Text("cached", style="cyan"),
            wording.duration(row.seconds) if row.executed else "\N{EN DASH}",
            *(wording.count(count) for count in (row.rows_in, row.rows_out) if count_columns),
            _DITTO if row.why == previous else row.why,
        )
        previous = row.why
    return table


def _progression_table(progression: Sequence[EvaluationReport]) -> Table:
    table = _table("Held-out accuracy")
    table.add_column("model", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("solved", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    scores = [(report.model, suite(report, "all")) for report in progression]
    for place, (model, score) in enumerate(scores):
        if score is None:
            table.add_row(model, "", "not measured", "")
            continue
        bar = "\N{FULL BLOCK}" * round(_BAR_CELLS * score.accuracy)
        last = place == len(scores) - 1
        table.add_row(
            model,
            Text(bar, style="green" if last else "bright_black"),
            wording.percent(score.accuracy),
            wording.interval(score),
            style="bold" if last else "",
        )
    return table


def _gains_table(gains: Sequence[Comparison]) -> Table:
    table = _table(f"Points gained over {wording.parent_name(gains[0].parent)}")
    table.add_column("task family", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    for row in gains:
        style = ("green" if row.difference > 0 else "red") if wording.is_clear(row) else ""
        low, high = wording.signed_points(row.low), wording.signed_points(row.high)
        table.add_row(
            wording.suite_label(row.suite),
            Text(wording.signed_points(row.difference), style=style),
            f"{low} to {high}",
        )
    return table


def _precision_table(precision: PrecisionTable) -> Table:
    table = _table(precision.title)
    table.add_column("slice", no_wrap=True)
    for name in ("points", "interval", "KL, nats", "routes", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in precision.rows:
        style = {"no": "red", "yes": "green"}.get(row.kind, "")
        cells = (row.points, row.reach, row.kl, row.routes, row.tokens)
        table.add_row(row.label, *cells, style=style)
    return table


_COLOURS = {"yes": "bold green", "unclear": "bold yellow", "no": "bold red"}


def _verdict_lines(pill: Pill, gate: GateDecision) -> list[RenderableType]:
    """Describe the gate's decision; only failed rules are listed."""
    failed = [line.text for line in rule_lines(gate.reasons) if line.kind != "yes"]
    passed = f"{len(gate.reasons) - len(failed)} of {len(gate.reasons)} rules of the gate passed."
    if gate.released and gate.awaits:
        waits = f"Not released yet: it waits for {gate.awaits} approvals by other keys. "
        return [Text.assemble((waits, _COLOURS["unclear"]), passed)]
    line = Text.assemble((f"{pill.text}. ", _COLOURS[pill.kind]), passed)
    if not failed:
        return [line]
    return [Text.assemble(line, " Against it:"), *(Text(f"  {text}") for text in failed)]


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
