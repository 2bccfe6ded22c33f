"""The clipped surrogate that most policy losses share (SAPO, GMPO and DPPO have their own).

Each splits a sequence's tokens into groups, takes the geometric mean of the token
ratios of a group, clips it to a range and weights the tokens:

              group              range                   tokens are averaged over
    GRPO      the token          (0.2, 0.2)              the sequence
    Dr. GRPO  the token          (0.2, 0.2)              a constant length
    DAPO      the token          (0.2, 0.28)             the batch
    CISPO     the token          capped, detached        the batch
    GSPO      the sequence       (3e-4, 4e-4)            the sequence
    LUSPO     the sequence       (2e-3, 2.5e-3)          the batch
    ESPO      tokens of similar  grows with the          the group, then the
              entropy            group's entropy         groups of the sequence

A loss file therefore only defines groups, ranges and weights (a `TokenPlan`, computed once from
pi_old); this file holds the arithmetic. The objective is maximised; loss = -objective.

Reduction: the loss of an update is -(sum of its sequences' objectives) divided by
(sequences of the step / updates of the step). Weights express everything else, so means
over the batch are weights times the number of sequences. Rows may be distributed in any way
over micro-batches, and over ranks whose gradients are summed.
Letters: N sequences, T tokens.
"""

from enum import StrEnum
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from tasks.algorithms.losses.protocol import Loss, StepTokens, TokenPlan


class RatioMode(StrEnum):
    """How ESPO's token ratio is computed (ESPO eq. 9)."""

    GSPO_TOKEN = "gspo_token"
    LITERAL_EQ9 = "literal_eq9"


MAX_LOG_RATIO = 10.0
"""Log-ratios are clamped to this before exp, as in verl's GSPO; far above any cap of a ratio."""
DETACHED: Literal["detached"] = "detached"
"""CISPO's form: the clipped ratio is a constant; the gradient is that of the log-probability."""
RatioForm = RatioMode | Literal["detached"]


def width(published: float, description: str) -> Any:
    """Declare a half-width of a clip range; the default is the paper's."""
    return Field(default=published, gt=0.0, description=description)


class RangedLoss(Loss):
    """A loss with a clip range; one without has no such settings."""

    off_policy: ClassVar[frozenset[str]] = frozenset(("clip_low", "clip_high"))

    clip_low: float
    clip_high: float

    @property
    def clip_range(self) -> tuple[float, float]:
        """As the settings say."""
        return self.clip_low, self.clip_high


class ClippedLoss(RangedLoss):
    """A loss of this family."""

    @property
    def ratio_form(self) -> RatioForm:
        """Which ratio is clipped, and what its gradient is."""
        return RatioMode.GSPO_TOKEN

    def objective(
        self,
        logprobs_NT: torch.Tensor,
        old_logprobs_NT: torch.Tensor,
        advantages_NT: torch.Tensor,
        plan: TokenPlan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the clipped objective [N] and the clipped tokens [N, T]."""
        return clipped_objective(
            logprobs_NT, old_logprobs_NT, advantages_NT, plan, ratio_mode=self.ratio_form
        )


def clip_plan(
    mask_NT: torch.Tensor,
    groups_NT: torch.Tensor,
    weights_NT: torch.Tensor,
    clip_range: tuple[float, float],
) -> TokenPlan:
    """Give every response token the same clip range, half-widths below and above 1."""
    inside_NT = mask_NT.float()
    low, high = clip_range
    return TokenPlan(groups_NT, weights_NT, low * inside_NT, high * inside_NT)


def unclipped(mask_NT: torch.Tensor, weights_NT: torch.Tensor) -> TokenPlan:
    """Weigh tokens for a loss that has neither groups nor clip ranges."""
    nothing_NT = torch.zeros(mask_NT.shape)
    return TokenPlan(token_groups(mask_NT), weights_NT, nothing_NT, nothing_NT)


def token_ratios(
    logprobs_NT: torch.Tensor, old_logprobs_NT: torch.Tensor, plan: TokenPlan
) -> torch.Tensor:
    """Return pi / pi_old of every token, with gradient; 1 where a token has no weight."""
    gap_NT = (logprobs_NT - old_logprobs_NT).masked_fill(plan.weights_NT <= 0, 0.0)
    return gap_NT.clamp(max=MAX_LOG_RATIO).exp()


def token_groups(mask_NT: torch.Tensor) -> torch.Tensor:
    """Number every token as a group of its own."""
    return torch.arange(mask_NT.shape[1]).expand(mask_NT.shape).contiguous()


def sequence_groups(mask_NT: torch.Tensor) -> torch.Tensor:
    """Put all tokens of a sequence into one group."""
    return torch.zeros_like(mask_NT, dtype=torch.int64)


def sequence_mean_weights(mask_NT: torch.Tensor) -> torch.Tensor:
    """1 / length on the tokens of a sequence; a sequence without tokens has weight 0."""
    inside_NT = mask_NT.float()
    return inside_NT / inside_NT.sum(dim=1, keepdim=True).clamp(min=1.0)


def batch_mean_weights(step: StepTokens) -> torch.Tensor:
    """Weight all tokens equally: 1 / tokens of the batch after division by its sequences.

    Rows without gradient count in both.
    """
    return step.mask_NT.float() * (step.totals.num_sequences / max(1, step.totals.num_tokens))


def group_means(
    values_NT: torch.Tensor, groups_NT: torch.Tensor, mask_NT: torch.Tensor
) -> torch.Tensor:
    """Replace every token's value by the mean of its group; zero outside the mask."""
    num_groups = int(groups_NT.max()) + 1 if groups_NT.numel() else 1
    sums = values_NT.new_zeros(values_NT.shape[0], num_groups)
    counts = torch.zeros_like(sums)
    inside = mask_NT.to(values_NT.dtype)
    sums.scatter_add_(1, groups_NT, values_NT * inside)
    counts.scatter_add_(1, groups_NT, inside)
    return (sums / counts.clamp(min=1.0)).gather(1, groups_NT) * inside


def clipped_objective(
    logprobs_NT: torch.Tensor,
    old_logprobs_NT: torch.Tensor,
    advantages_NT: torch.Tensor,
    plan: TokenPlan,
    *,
    ratio_mode: RatioForm,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the objective per sequence [N] and the tokens that were clipped [N, T] (bool).

    Args:
        logprobs_NT: under the policy in training, with gradient.
        old_logprobs_NT: under pi_old, from which the plan was computed.
        advantages_NT: may already include the correction weights (mismatch.py).
        ratio_mode: `gspo_token`: value of the group ratio, gradient of the token
            (ESPO eq. 3); `literal_eq9`: group ratio times token ratio, as printed;
            `detached`: the clipped ratio as a constant times the log-probability.
    """
    mask_NT = plan.weights_NT > 0
    gap_NT = (logprobs_NT - old_logprobs_NT).masked_fill(~mask_NT, 0.0)
    group_NT = group_means(gap_NT.detach(), plan.groups_NT, mask_NT)
    anchor_NT = old_logprobs_NT if ratio_mode is RatioMode.LITERAL_EQ9 else logprobs_NT.detach()
    log_ratio_NT = (group_NT + logprobs_NT - anchor_NT).masked_fill(~mask_NT, 0.0)
    ratio_NT = log_ratio_NT.clamp(max=MAX_LOG_RATIO).exp()
    kept_NT = ratio_NT.clamp(1.0 - plan.clip_low_NT, 1.0 + plan.clip_high_NT)
    if ratio_mode == DETACHED:
        clipped_NT = (kept_NT != ratio_NT) & mask_NT
        value_NT = kept_NT.detach() * advantages_NT * logprobs_NT.masked_fill(~mask_NT, 0.0)
    else:
        free_NT, bound_NT = ratio_NT * advantages_NT, kept_NT * advantages_NT
        # On a tie the unclipped term must win: torch.minimum would halve its gradient.
        clipped_NT = (bound_NT < free_NT) & mask_NT
        value_NT = torch.where(clipped_NT, bound_NT, free_NT)
    return (value_NT * plan.weights_NT).sum(dim=1), clipped_NT
