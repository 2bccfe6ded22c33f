"""Terminal output of the ledger: best and worst prompts, outcomes, uses of tokens, group sizes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from tasks.algorithms.group_size import (
    MAX_ZERO_VARIANCE,
    GroupSize,
    choose_group_size,
)

if TYPE_CHECKING:
    pass
from tasks.provenance.ledger.accounts import Ledger, PromptAccount


def ledger_text(ledger: Ledger, name: str, show: int) -> RenderableType:
    """Print the first and the last prompts by advantage earned per token."""
    rolled = [prompt for prompt in ledger.prompts if prompt.rollouts > 0]
    half = min(show, (len(rolled) + 1) // 2)
    return Group(
        _prompt_table(f"{name}: prompts that earned most per token", rolled[:half]),
        _prompt_table(f"{name}: prompts that earned least per token", rolled[::-1][:half]),
        _outcome_table(ledger),
        _use_table(ledger),
        *([_size_table(ledger.sizes)] if ledger.sizes else []),
        _summary(ledger),
    )


def _prompt_table(title: str, prompts: Sequence[PromptAccount]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("prompt", overflow="fold", min_width=20)
    for head in ("draws", "skips", "solved", "tokens", "engine s", "verifier s"):
        table.add_column(head, justify="right")
    for head in ("|A| / ktoken", "change"):
        table.add_column(head, justify="right")
    for prompt in prompts:
        table.add_row(
            prompt.problem_id,
            str(prompt.draws),
            str(prompt.skips),
            f"{prompt.solved} of {prompt.scored}",
            f"{prompt.generated_tokens:,}",
            f"{prompt.engine_seconds:.2f}",
            f"{prompt.verifier_seconds:.3f}",
            f"{prompt.earned_per_kilotoken:.1f}",
            f"{100 * prompt.pass_rate_change:+.0f} %",
        )
    return table


def _outcome_table(ledger: Ledger) -> Table:
    table = Table(title="Outcome of every draw", title_justify="left", box=None)
    for head in ("stage", "outcome"):
        table.add_column(head, no_wrap=True)
    for head in ("draws", "tokens", "trained", "saved (predicted)", "|advantage|"):
        table.add_column(head, justify="right")
    for row in ledger.outcomes:
        table.add_row(
            row.stage,
            row.outcome.replace("_", " "),
            f"{row.draws:,}",
            f"{row.generated_tokens:,}",
            f"{row.trained_tokens:,}",
            f"{row.saved_tokens:,}",
            f"{row.advantage_mass:,.0f}",
        )
    return table


def _use_table(ledger: Ledger) -> Table:
    table = Table(title="Use of the generated tokens", title_justify="left", box=None)
    table.add_column("use", no_wrap=True)
    for head in ("tokens", "share"):
        table.add_column(head, justify="right")
    total = max(1, sum(ledger.uses.values()))
    for use, tokens in ledger.uses.items():
        table.add_row(use.replace("_", " "), f"{tokens:,}", f"{tokens / total:.1%}")
    return table


def _size_table(sizes: Sequence[GroupSize]) -> Table:
    best = choose_group_size(sizes).size
    title = (
        f"Predicted results by group size (at most {MAX_ZERO_VARIANCE:.0%} zero-variance groups)"
    )
    table = Table(title=title, title_justify="left", box=None)
    for head in ("N", "zero-variance groups", "pass@N", "mean |A|", "|A| / ktoken"):
        table.add_column(head, justify="right")
    for size in sizes:
        table.add_row(
            f"{size.size}{' *' if size.size == best else ''}",
            f"{size.zero_variance:.1%}",
            f"{size.pass_at_n:.1%}",
            f"{size.signal:.3f}",
            f"{size.signal_per_kilotoken:.2f}",
        )
    return table


def _summary(ledger: Ledger) -> str:
    total = ledger.totals
    share = total["trained_tokens"] / max(1.0, total["generated_tokens"])
    return (
        f"{total['prompts']:,.0f} prompts, {total['draws']:,.0f} draws: "
        f"{total['generated_tokens']:,.0f} tokens generated in {total['engine_seconds']:,.1f} s, "
        f"{share:.0%} of them with weight in the loss; {total['saved_tokens']:,.0f} tokens not "
        f"generated; verdicts took {total['verifier_seconds']:,.1f} s and "
        f"{total['judge_calls']:,.0f} judge calls."
    )
