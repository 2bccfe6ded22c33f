"""Terminal output of row lineage: plain tables."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from data_schemas.statements import (
    Difference,
    Forgotten,
    Made,
    ModelTrace,
    ReleaseComparison,
    RowTrace,
    TrainedRow,
    UsedIn,
)

_SHORT = 12
"""Characters of a digest that are printed."""


def row_text(trace: RowTrace) -> RenderableType:
    """Print where rows came from, what they trained and what they touched."""
    parts: list[RenderableType] = [f"{trace.asked}: {trace.rows:,} raw rows"]
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


def forget_text(found: Forgotten, store: str) -> RenderableType:
    """Print what has to go, and the commands of the retraining."""
    parts: list[RenderableType] = [
        f"{found.named:,} rows named, {len(found.unknown):,} of them never read by this store; "
        f"{len(found.duplicates):,} duplicates of them are withdrawn too",
        *([uses_table(found.trace.uses)] if found.trace.uses else ["Used in no training."]),
    ]
    if found.releases:
        parts.append(made_table("Releases that must go", found.releases))
        others = [made for made in found.trace.checkpoints if not made.release]
        parts.append(made_table("Checkpoints that must go", others))
    else:
        parts.append("No release has to go.")
    if found.trace.evaluations:
        count = len(found.trace.evaluations)
        parts.append(f"\n{count:,} evaluations were measured with them; these numbers change.")
    if found.similar:
        rows = ((row,) for row in found.similar)
        parts.append(_table("Near duplicates, NOT withdrawn; add those you want", ("row",), rows))
    parts.append(f"\nexclusion list  {found.exclusions} ({found.rows:,} rows)")
    for one in found.retrainings:
        parts.append(
            f"{one.release} without them:\n"
            f"  eachprompt run --settings {one.settings} --store {store}"
            if one.settings
            else f"{one.release}: no settings, {one.reason}. Add the list to the sources of what "
            f"made it: withdrawn={found.exclusions}"
        )
    return Group(*parts)


def comparison_text(found: ReleaseComparison) -> RenderableType:
    """Print what two models differ in."""
    parts: list[RenderableType] = [
        f"{_name(found.before)} -> {_name(found.after)}",
        f"rows that trained them: {found.rows_before:,} -> {found.rows_after:,}; {found.added:,} "
        f"added, {found.removed:,} removed, {found.changed:,} used to another extent",
    ]
    for title, of in (
        ("Raw files", found.data),
        ("Code and environment", found.code),
        ("Settings", found.settings),
        ("Rewards", found.rewards),
        ("Evaluation", found.evaluation),
    ):
        parts.append(_table(title, ("stage", "name", "before", "after"), map(_values, of)))
        if not of:
            parts.append(" no difference")
    if found.table:
        parts.append(f"\nrows  {found.table}")
    return Group(*parts)


def _values(one: Difference) -> Sequence[str]:
    return one.stage, one.name, one.before or "-", one.after or "-"


def uses_table(uses: Iterable[UsedIn]) -> Table:
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


def made_table(title: str, made: Iterable[Made]) -> Table:
    """One line per checkpoint."""
    rows = (
        (one.stage, one.checkpoint[:_SHORT], one.statement[:_SHORT], _release(one)) for one in made
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


def _release(made: Made) -> str:
    if not made.release:
        return ""
    return f"{made.release} {made.version}{'' if made.passed else ', refused by its gate'}"


def _name(made: Made) -> str:
    return _release(made) or f"{made.stage} {made.checkpoint[:_SHORT]}"


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None)
    numbers = {"row", "rows", "times", "tokens", "stages", "|advantage|"}
    for head in heads:
        is_number = head in numbers
        table.add_column(head, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
