"""Terminal output of row lineage: plain tables."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from data_schemas.row_lineage import (
    Difference,
    ModelTrace,
    ReleaseComparison,
    RowTrace,
    StageUse,
    TracedCheckpoint,
    TrainedRow,
    WithdrawalImpact,
)
from data_schemas.texts import on_one_line

_SHORT = 12
"""Characters of a digest that are printed."""


def row_text(trace: RowTrace) -> RenderableType:
    """Print where rows came from, what they trained and what they touched."""
    parts: list[RenderableType] = [f"{on_one_line(trace.asked)}: {trace.rows:,} raw rows"]
    if trace.places:
        parts.append(_table("Raw rows", ("file", "row", "sha256 of the file"), _places(trace)))
    if trace.outcomes:
        parts.append(_table("Curated as", ("set", "kind", "item", "why"), _fates(trace)))
    parts += [uses_table(trace.uses)] if trace.uses else ["It was used in no training."]
    if trace.evaluations:
        parts.append(f"Held out: {len(trace.evaluations):,} evaluations were measured with it.")
    if trace.checkpoints:
        parts.append(made_table("Checkpoints and releases that it touched", trace.checkpoints))
    else:
        parts.append("It touched no checkpoint and no release.")
    return Group(*parts)


def model_text(trace: ModelTrace) -> RenderableType:
    """Print which rows trained a model, and what was made from it."""
    parts: list[RenderableType] = [
        f"{_name(trace.model)}: trained on {trace.rows:,} raw rows",
        uses_table(trace.uses),
        _table(
            "Rows that trained it, by advantage",
            ("raw row", "item", "source", "stages", "times", "tokens", "|advantage|"),
            map(_trained, trace.top),
        ),
        made_table("Made of", trace.made_of),
    ]
    if trace.made_from:
        parts.append(made_table("Made from it", trace.made_from))
    if trace.table:
        parts.append(f"\nall rows  {trace.table}")
    return Group(*parts)


def forget_text(report: WithdrawalImpact, store: str) -> RenderableType:
    """Print what has to go, and the commands of the retraining."""
    parts: list[RenderableType] = [
        f"{report.named:,} rows named, {len(report.unknown):,} of them never read by this store; "
        f"{len(report.duplicates):,} duplicates of them are withdrawn too",
        *([uses_table(report.trace.uses)] if report.trace.uses else ["Used in no training."]),
    ]
    if report.releases:
        parts.append(made_table("Releases that must go", report.releases))
        others = [one for one in report.trace.checkpoints if not one.release]
        parts.append(made_table("Checkpoints that must go", others))
    else:
        parts.append("No release has to go.")
    if report.trace.evaluations:
        count = len(report.trace.evaluations)
        parts.append(f"\n{count:,} evaluations were measured with them; these numbers change.")
    if report.similar:
        rows = ((row,) for row in report.similar)
        parts.append(_table("Near duplicates, NOT withdrawn; add those you want", ("row",), rows))
    parts.append(f"\nexclusion list  {report.exclusions} ({report.rows:,} rows)")
    for one in report.retrainings:
        parts.append(
            f"{one.release} without them:\n"
            f"  eachprompt run --settings {one.settings} --store {store}"
            if one.settings
            else f"{one.release}: no settings, {one.reason}. Add the list to the sources of what "
            f"made it: withdrawn={report.exclusions}"
        )
    return Group(*parts)


def comparison_text(pair: ReleaseComparison) -> RenderableType:
    """Print what two models differ in."""
    parts: list[RenderableType] = [
        f"{_name(pair.before)} -> {_name(pair.after)}",
        f"rows that trained them: {pair.rows_before:,} -> {pair.rows_after:,}; {pair.added:,} "
        f"added, {pair.removed:,} removed, {pair.changed:,} used to another extent",
    ]
    for title, of in (
        ("Raw files", pair.data),
        ("Code and environment", pair.code),
        ("Settings", pair.settings),
        ("Rewards", pair.rewards),
        ("Evaluation", pair.evaluation),
    ):
        parts.append(_table(title, ("stage", "name", "before", "after"), map(_values, of)))
        if not of:
            parts.append(" no difference")
    if pair.table:
        parts.append(f"\nrows  {pair.table}")
    return Group(*parts)


def _values(one: Difference) -> Sequence[str]:
    return one.stage, one.name, one.before or "-", one.after or "-"


def uses_table(uses: Iterable[StageUse]) -> Table:
    """One line per stage and outcome; those that changed weights are marked."""
    heads = ("stage", "statement", "outcome", "rows", "steps", "times", "tokens", "|advantage|")
    rows = (
        (
            f"{'* ' if use.trained else '  '}{use.stage}",
            use.statement[:_SHORT],
            use.outcome.replace("_", " "),
            f"{use.rows:,}",
            steps_text(use.steps),
            f"{use.times:,}",
            f"{use.tokens:,}",
            f"{use.advantage:,.1f}",
        )
        for use in uses
    )
    return _table("Used in (* = changed weights; times = rollouts or epochs)", heads, rows)


def made_table(title: str, checkpoints: Iterable[TracedCheckpoint]) -> Table:
    """One line per checkpoint."""
    rows = (
        (one.stage, one.checkpoint[:_SHORT], one.statement[:_SHORT], _release(one))
        for one in checkpoints
    )
    return _table(title, ("stage", "checkpoint", "statement", "release"), rows)


def steps_text(steps: Sequence[int]) -> str:
    """Write steps as ranges: '1-3, 7'."""
    parts: list[str] = []
    start = 0
    for place, step in enumerate(steps):
        if place + 1 == len(steps) or steps[place + 1] != step + 1:
            first = steps[start]
            parts.append(str(step) if first == step else f"{first}-{step}")
            start = place + 1
    return ", ".join(parts)


def _places(trace: RowTrace) -> Iterable[Sequence[str]]:
    return ((one.uri, str(one.number), one.file[:_SHORT]) for one in trace.places)


def _fates(trace: RowTrace) -> Iterable[Sequence[str]]:
    for one in trace.outcomes:
        yield one.artifact[:_SHORT], one.kind, one.item, f"{one.reason} {one.detail}".strip()


def _trained(row: TrainedRow) -> Sequence[str]:
    return (
        row.source_row[:_SHORT],
        row.item,
        row.source,
        str(row.stages),
        f"{row.times:,}",
        f"{row.tokens:,}",
        f"{row.advantage:,.1f}",
    )


def _release(checkpoint: TracedCheckpoint) -> str:
    if not checkpoint.release:
        return ""
    refusal = "" if checkpoint.passed else ", refused by its gate"
    return on_one_line(f"{checkpoint.release} {checkpoint.version}{refusal}")


def _name(checkpoint: TracedCheckpoint) -> str:
    return _release(checkpoint) or f"{checkpoint.stage} {checkpoint.checkpoint[:_SHORT]}"


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None)
    numbers = {"row", "rows", "times", "tokens", "stages", "|advantage|"}
    for head in heads:
        is_number = head in numbers
        table.add_column(head, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(on_one_line, row))
    return table
