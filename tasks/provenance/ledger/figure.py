"""Figure of the ledger: tokens and advantage of every prompt, and tokens by group outcome."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from tasks.provenance.ledger.accounts import Ledger

_COLOURS = {
    "1 before rollout": "#8b97a3",
    "2 at reward": "#d08a1d",
    "3 at update": "#1a7f5a",
    "later": "#4c4a86",
}


def ledger_png(ledger: Ledger, title: str) -> bytes:
    """Draw both plots into one PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_prompts(left, ledger)
    _draw_outcomes(right, ledger)
    figure.suptitle(title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def _draw_prompts(axes: "Axes", ledger: Ledger) -> None:
    rolled = [prompt for prompt in ledger.prompts if prompt.rollouts > 0]
    for domain in sorted({prompt.domain for prompt in rolled}):
        mine = [prompt for prompt in rolled if prompt.domain is domain]
        tokens = [prompt.generated_tokens for prompt in mine]
        earned = [prompt.advantage_mass for prompt in mine]
        axes.scatter(tokens, earned, s=14, alpha=0.6, label=domain.replace("_", " "))
    axes.set_xlabel("tokens generated for the prompt")
    axes.set_ylabel("sum of |advantage| it was trained with")
    axes.legend(fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def _draw_outcomes(axes: "Axes", ledger: Ledger) -> None:
    accounts = [account for account in reversed(ledger.outcomes) if account.draws > 0]
    axes.barh(
        [account.outcome.replace("_", " ") for account in accounts],
        [account.generated_tokens + account.saved_tokens for account in accounts],
        color=[_COLOURS[account.stage] for account in accounts],
    )
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("tokens generated, or not generated (skipped)")
    axes.grid(alpha=0.25, axis="x")
