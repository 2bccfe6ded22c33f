"""The mismatch table as a terminal table, as Markdown and as JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields

from rich.table import Table

from tasks.mismatch.numerics import Gap

GAP_COLUMNS: tuple[tuple[str, Callable[[Gap], str]], ...] = (
    ("rollout", lambda gap: gap.rollout),
    ("trainer", lambda gap: gap.trainer),
    ("replay", lambda gap: gap.replay.value),
    ("tokens", lambda gap: f"{gap.tokens:,}"),
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
"""Heads and cells of the mismatch table; the first three columns are names, the others numbers."""
NAMES = 3


def gaps_table(gaps: Sequence[Gap], prompts: int) -> Table:
    """Build the table, one line per pair of engines and replay mode."""
    title = f"trainer against rollout engine, {prompts} prompts"
    table = Table(title=title, title_justify="left", box=None)
    for place, (head, _) in enumerate(GAP_COLUMNS):
        table.add_column(head, justify="left" if place < NAMES else "right")
    for gap in gaps:
        table.add_row(*(cell(gap) for _, cell in GAP_COLUMNS))
    return table


def gaps_markdown(gaps: Sequence[Gap]) -> str:
    """Return the same table as Markdown."""
    rows = [[head for head, _ in GAP_COLUMNS]]
    rows.append(["---" if place < NAMES else "---:" for place in range(len(GAP_COLUMNS))])
    rows.extend([cell(gap) for _, cell in GAP_COLUMNS] for gap in gaps)
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
