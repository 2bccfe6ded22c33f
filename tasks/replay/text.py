"""A replay on a terminal: what is equal, and what another loss would have done."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from rich.table import Table

from tasks.replay.counterfactual import Effect
from tasks.replay.numerics import Gap
from tasks.replay.recompute import Compared
from tasks.rl.capsule import Capsule


def compared_table(capsule: Capsule, rows: Sequence[Compared]) -> Table:
    """One line per thing the step made."""
    before, after = capsule.weights_before[:12], capsule.weights_after[:12]
    title = f"Step {capsule.step}, repeated (weights {before} -> {after})"
    table = Table(title=title, title_justify="left", box=None)
    for head in ("what", "recorded as", "bytes"):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(row.name, row.shape, row.difference or "equal")
    return table


def effects_table(own: Effect, other: Effect) -> Table:
    """The step's own loss beside another."""
    table = Table(
        title="The same step under another loss", title_justify="left", title_style="", box=None
    )
    table.add_column("")
    for effect in (own, other):
        table.add_column(effect.loss, justify="right")
    table.add_row("objective", f"{own.objective:.6f}", f"{other.objective:.6f}")
    table.add_row("clipped tokens", f"{own.clip_share:.1%}", f"{other.clip_share:.1%}")
    table.add_row("tokens with weight", f"{own.tokens:,}", f"{other.tokens:,}")
    table.add_row("sum of weights", f"{own.weight:.4f}", f"{other.weight:.4f}")
    _shares(table, own.domains, other.domains)
    _shares(table, own.fates, other.fates)
    table.add_row("cosine of weights", f"{own.cosine:.4f}", f"{other.cosine:.4f}")
    return table


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
"""Heads and cells of the mismatch table; the first three are names, all else are numbers."""
NAMES = 3


def gaps_table(gaps: Sequence[Gap], prompts: int) -> Table:
    """One line per pair of engines and way of replay."""
    title = f"trainer against rollout engine, {prompts} prompts"
    table = Table(title=title, title_justify="left", box=None)
    for place, (head, _) in enumerate(GAP_COLUMNS):
        table.add_column(head, justify="left" if place < NAMES else "right")
    for gap in gaps:
        table.add_row(*(cell(gap) for _, cell in GAP_COLUMNS))
    return table


def gaps_markdown(gaps: Sequence[Gap]) -> str:
    """The same, to be put into a document."""
    rows = [[head for head, _ in GAP_COLUMNS]]
    rows.append(["---" if place < NAMES else "---:" for place in range(len(GAP_COLUMNS))])
    rows.extend([cell(gap) for _, cell in GAP_COLUMNS] for gap in gaps)
    # A bar would end the cell.
    return "".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |\n" for row in rows)


def gaps_json(gaps: Sequence[Gap]) -> bytes:
    """The same, unrounded, for machines."""
    rows = [
        {"rollout": gap.rollout, "trainer": gap.trainer}
        | {field.name: getattr(gap, field.name) for field in fields(gap) if field.name != "engines"}
        for gap in gaps
    ]
    return json.dumps(rows, indent=1).encode() + b"\n"


def _shares(table: Table, own: Mapping[str, float], other: Mapping[str, float]) -> None:
    for name in sorted(own.keys() | other.keys()):
        shares = (f"{side.get(name, 0.0):.1%}" for side in (own, other))
        table.add_row(f"weight on {name.replace('_', ' ')}", *shares)
