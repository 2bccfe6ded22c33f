"""C3PO: the same number of trained tokens in every update.

Source: Ring-lite (arXiv 2506.14731) eq. 2 and 3. Updates with different
numbers of tokens have gradients of different size. Responses are therefore drawn until a
budget Phi is reached, and the sum is always divided by Phi.
Differs: the order of responses is not specified; here it is a seeded shuffle, because with
an order by length or by prompt some would never be trained. Eq. 2 requires exactly Phi tokens,
eq. 3 lets the last response overshoot; `truncate_last` selects. All responses count, those
without an advantage too (eq. 2); what is beyond the budget is in no term of the loss.
Letters: N sequences, T tokens.
"""

from typing import ClassVar

import torch
from pydantic import Field

from tasks.algorithms.losses.protocol import StepTotals, TokenPlan
from tasks.algorithms.terms.protocol import StepEffect, StepSignal, Term

SEED_STRIDE = 1_000_003
"""Distance between two seeds, and between the seeds of two steps: a prime above any number of
steps or updates, so that no two of them share a shuffle."""
_SEEDS = 2**64
"""Seeds that torch accepts."""


class TokenBudget(Term):
    """Constrained contextual computation: every update trains the same number of tokens."""

    acts_on_all: ClassVar[bool] = True

    tokens_per_response: float = Field(
        default=12800.0,
        gt=0.0,
        description="Phi of an update / responses that it is generated from; Ring-lite 12800",
    )
    truncate_last: bool = Field(
        default=True, description="cut the last response to the budget exactly"
    )

    def budget(self, totals: StepTotals) -> int:
        """Return Phi, the tokens of an update over all ranks, at least one.

        The published 409,600 are a rank's: of 512 prompts x 16 responses a rank of 256 has 32, so
        Phi is 12,800 tokens for every response that an update is generated from. In this unit it
        depends neither on the number of ranks nor on the batch, and is the same in every step.
        """
        return max(1, round(self.tokens_per_response * totals.responses_per_update))

    def weigh(self, step: StepSignal) -> StepEffect:
        """Cut what is beyond the budget, and divide by the budget."""
        mask_NT, budget = step.kept_NT, self.budget(step.totals)
        kept_NT = kept_tokens(mask_NT, step.totals, budget, self.truncate_last)
        plan = apply_budget(step.plan, mask_NT, kept_NT, step.totals, budget)
        return StepEffect(plan=plan, kept_NT=kept_NT)


def select(
    lengths_N: torch.Tensor, budget: int, seed: int, truncate_last: bool = True
) -> torch.Tensor:
    """Draw responses until `budget` tokens are reached and return the kept tokens, int64 [N].

    If the sum is below the budget everything is kept; a response without tokens keeps 0.
    """
    generator = torch.Generator().manual_seed(seed)
    order_N = torch.randperm(len(lengths_N), generator=generator)
    return fill(lengths_N, order_N, budget, truncate_last)


def fill(
    lengths_N: torch.Tensor, order_N: torch.Tensor, budget: int, truncate_last: bool
) -> torch.Tensor:
    """Keep responses in this order up to the budget and return the kept tokens, int64 [N]."""
    ordered_N = lengths_N[order_N]
    before_N = ordered_N.cumsum(dim=0) - ordered_N
    kept_N = torch.where(before_N < budget, ordered_N, torch.zeros_like(ordered_N))
    if truncate_last:
        kept_N = torch.minimum(kept_N, (budget - before_N).clamp(min=0))
    return torch.empty_like(kept_N).scatter_(0, order_N, kept_N)


def kept_tokens(
    mask_NT: torch.Tensor, step: StepTotals, budget: int, truncate_last: bool
) -> torch.Tensor:
    """Mark the response tokens that the budget of every update keeps.

    Args:
        mask_NT: response tokens.
        step: its updates are rows over all ranks; each has its own shuffle.
        budget: tokens of an update.
        truncate_last: as in `fill`.
    """
    lengths_N = mask_NT.sum(dim=1)
    kept_N = torch.zeros_like(lengths_N)
    for number, rows in enumerate(step.updates):
        seed = (step.seed * SEED_STRIDE + number) % _SEEDS
        kept_N[rows] = select(lengths_N[rows], budget, seed, truncate_last)
    return mask_NT & (mask_NT.long().cumsum(dim=1) <= kept_N[:, None])


def apply_budget(
    plan: TokenPlan, mask_NT: torch.Tensor, kept_NT: torch.Tensor, step: StepTotals, budget: int
) -> TokenPlan:
    """Cut a plan to the budget of every update; a token weighs 1 / budget after division.

    Differences of weight within a sequence (ESPO's groups) are preserved: weights are
    relative to the sequence's mean weight.

    Args:
        plan: of the whole step.
        mask_NT: response tokens.
        kept_NT: of these, what `kept_tokens` keeps.
        step: an update divides by its sequences / updates.
        budget: tokens of an update.
    """
    lengths_N = mask_NT.sum(dim=1)
    total_N1 = plan.weights_NT.sum(dim=1, keepdim=True)
    relative_NT = torch.where(
        total_N1 > 0, plan.weights_NT * lengths_N[:, None] / total_N1.clamp(min=1e-30), 0.0
    )
    scale = step.num_sequences / max(1, len(step.updates)) / budget
    return TokenPlan(
        groups_NT=plan.groups_NT,
        weights_NT=relative_NT * kept_NT * scale,
        clip_low_NT=plan.clip_low_NT,
        clip_high_NT=plan.clip_high_NT,
    )
