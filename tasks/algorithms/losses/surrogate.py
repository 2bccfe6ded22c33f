"""The clipped surrogate that GRPO, GSPO and ESPO share.

Every one of them splits a sequence's tokens into groups, takes the geometric mean of the
token ratios of a group, clips it to a range and weighs the tokens:

    GRPO   each token its own group          range (0.2, 0.28)
    GSPO   the whole sequence one group      range (3e-4, 4e-4)
    ESPO   groups by entropy                 range grows with the group's entropy

A loss file therefore only says groups, ranges and weights (a Plan, made once from
pi_old); this file holds the arithmetic. The objective is maximised; loss = -objective.
Letters: N sequences, T tokens.
"""

from dataclasses import dataclass

import torch

from data_schemas.settings import RatioMode

MAX_LOG_RATIO = 10.0
"""Combined log-ratios are cut here before exp, as in verl's GSPO."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a loss decides before the first update; all [N, T], zero outside the mask."""

    groups_NT: torch.Tensor
    """int64 group number within the sequence."""
    weights_NT: torch.Tensor
    """Token weights; a sequence's weights add up to 1."""
    clip_low_NT: torch.Tensor
    clip_high_NT: torch.Tensor

    def columns(self) -> dict[str, torch.Tensor]:
        """The same as columns of a TokenBatch."""
        return {
            "groups": self.groups_NT,
            "weights": self.weights_NT,
            "clip_low": self.clip_low_NT,
            "clip_high": self.clip_high_NT,
        }


def group_means(
    values_NT: torch.Tensor, groups_NT: torch.Tensor, mask_NT: torch.Tensor
) -> torch.Tensor:
    """Give every token the mean of its group's values; zero outside the mask."""
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
    plan: Plan,
    *,
    ratio_mode: RatioMode,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per-sequence objective [N] and where the clip cut the gradient [N, T] (bool).

    Args:
        logprobs_NT: under the policy in training, with gradient.
        old_logprobs_NT: under the policy that the plan was made for.
        ratio_mode: `gspo_token`: value of the group ratio, gradient of the token
            (ESPO eq. 3); `literal_eq9`: group ratio times token ratio, as printed.
    """
    mask_NT = plan.weights_NT > 0
    gap_NT = (logprobs_NT - old_logprobs_NT).masked_fill(~mask_NT, 0.0)
    group_NT = group_means(gap_NT.detach(), plan.groups_NT, mask_NT)
    anchor_NT = logprobs_NT.detach() if ratio_mode is RatioMode.GSPO_TOKEN else old_logprobs_NT
    log_ratio_NT = (group_NT + logprobs_NT - anchor_NT).masked_fill(~mask_NT, 0.0)
    ratio_NT = log_ratio_NT.clamp(max=MAX_LOG_RATIO).exp()
    free_NT = ratio_NT * advantages_NT
    bound_NT = ratio_NT.clamp(1.0 - plan.clip_low_NT, 1.0 + plan.clip_high_NT) * advantages_NT
    # On a tie the unclipped term must win: torch.minimum would halve its gradient.
    clipped_NT = (bound_NT < free_NT) & mask_NT
    value_NT = torch.where(clipped_NT, bound_NT, free_NT)
    return (value_NT * plan.weights_NT).sum(dim=1), clipped_NT
