"""Terminal output of a replay: the byte comparison, and the result of another loss."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from tasks.rl.replay.counterfactual import Effect
from tasks.rl.replay.recompute import OutputComparison
from tasks.rl.step_snapshot import StepSnapshot


def compared_table(snapshot: StepSnapshot, rows: Sequence[OutputComparison]) -> Table:
    """One line per output of the step."""
    before, after = snapshot.weights_before[:12], snapshot.weights_after[:12]
    title = f"Step {snapshot.step}, repeated (weights {before} -> {after})"
    table = Table(title=title, title_justify="left", box=None)
    for head in ("output", "recorded as", "bytes"):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(row.name, row.shape, row.difference or "equal")
    return table


def effects_table(own: Effect, other: Effect) -> Table:
    """Compare the step's own loss with another one."""
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
    _shares(table, own.outcomes, other.outcomes)
    table.add_row("cosine of weights", f"{own.cosine:.4f}", f"{other.cosine:.4f}")
    return table


def _shares(table: Table, own: Mapping[str, float], other: Mapping[str, float]) -> None:
    for name in sorted(own.keys() | other.keys()):
        shares = (f"{side.get(name, 0.0):.1%}" for side in (own, other))
        table.add_row(f"weight on {name.replace('_', ' ')}", *shares)
