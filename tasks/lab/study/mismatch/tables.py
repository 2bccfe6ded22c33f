"""The mismatch table as a terminal table, as Markdown and as JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields

from rich.table import Table

from tasks.algorithms.mismatch import QUARTERS
from tasks.lab.study.mismatch.numerics import Gap

Columns = tuple[tuple[str, Callable[[Gap], str]], ...]
"""Heads and cells; the first three columns are names, the others numbers."""

NAME_COLUMNS: Columns = (
    ("rollout", lambda gap: gap.rollout),
    ("trainer", lambda gap: gap.trainer),
    ("replay", lambda gap: gap.replay.value),
)
GAP_COLUMNS: Columns = (
    *NAME_COLUMNS,
    ("tokens", lambda gap: f"{gap.tokens:,}"),
    ("overflow", lambda gap: f"{gap.overflow:,}"),
    ("mean |dlogp|", lambda gap: f"{gap.mean_abs:.2e}"),
    ("95% over prompts", lambda gap: f"{gap.low:.2e} .. {gap.high:.2e}"),
    ("k3", lambda gap: f"{gap.k3:.2e}"),
    ("max |dlogp|", lambda gap: f"{gap.largest:.2e}"),
    ("beyond 0.1", lambda gap: f"{gap.wide_share:.3%}"),
    ("beyond 2x", lambda gap: f"{gap.extreme_share:.3%}"),
    ("routes differ", lambda gap: f"{gap.route_share:.3%}"),
    ("tokens differ", lambda gap: f"{gap.token_share:.2%}"),
    ("effective", lambda gap: f"{gap.effective_share:.6f}"),
)


def _part(name: str, style: str) -> Callable[[Gap], str]:
    """A cell of the anatomy; '-' if the quantity is not defined for these tokens."""
    return lambda gap: (
        format(gap.anatomy[f"mismatch/{name}"], style) if f"mismatch/{name}" in gap.anatomy else "-"
    )


ANATOMY_COLUMNS: Columns = (
    *NAME_COLUMNS,
    ("|dlogp| p99", _part("abs_logprob_p99", ".2e")),
    ("p99.9", _part("abs_logprob_p999", ".2e")),
    ("tail index", _part("tail_index", ".2f")),
    *(
        (f"k3, quarter {index}", _part(f"k3_quarter_{index}", ".2e"))
        for index in range(1, QUARTERS + 1)
    ),
    ("|sum of dlogp|", _part("sequence_log_ratio", ".2e")),
    ("max", _part("sequence_log_ratio_max", ".2e")),
    ("effective", _part("sequence_effective_share", ".6f")),
)


def gaps_tables(gaps: Sequence[Gap], prompts: int) -> tuple[Table, Table]:
    """Build the table and that of the anatomy, one line per pair of engines and replay mode."""
    return (
        _table(f"trainer against rollout engine, {prompts} prompts", GAP_COLUMNS, gaps),
        _table("by size, by quarter of a response, by response", ANATOMY_COLUMNS, gaps),
    )


def _table(title: str, columns: Columns, gaps: Sequence[Gap]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    for place, (head, _) in enumerate(columns):
        table.add_column(head, justify="left" if place < len(NAME_COLUMNS) else "right")
    for gap in gaps:
        table.add_row(*(cell(gap) for _, cell in columns))
    return table


def gaps_markdown(gaps: Sequence[Gap]) -> str:
    """Return the same tables as Markdown."""
    return "\n".join(_markdown(columns, gaps) for columns in (GAP_COLUMNS, ANATOMY_COLUMNS))


def _markdown(columns: Columns, gaps: Sequence[Gap]) -> str:
    rows = [[head for head, _ in columns]]
    rows.append(["---" if place < len(NAME_COLUMNS) else "---:" for place in range(len(columns))])
    rows.extend([cell(gap) for _, cell in columns] for gap in gaps)
    # A vertical bar would end the cell.
    return "".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |\n" for row in rows)


def gaps_json(gaps: Sequence[Gap]) -> bytes:
    """Return the same rows as JSON, unrounded."""
    rows = [
        {"rollout": gap.rollout, "trainer": gap.trainer}
        | {field.name: getattr(gap, field.name) for field in fields(gap) if field.name != "engines"}
        for gap in gaps
    ]
    return json.dumps(rows, indent=1).encode() + b"\n"
