"""MaxRL's advantages (arXiv 2602.02710)."""

from typing import ClassVar

import torch

from tasks.algorithms.advantages.grouped import STD_EPSILON, group_advantages, has_variance
from tasks.algorithms.advantages.protocol import Advantage


class MaxRL(Advantage):
    """Centre and divide by the mean score of the group.

    With scores of 1 and 0 its expectation is the gradient of log p to order G - 1, where that of
    `centred` is the gradient of p: prompts that are rarely solved weigh more. A group whose
    scores are equal has its centred penalties, which are not divided; in others they are centred
    and divided, and no part of the divisor.
    Differs: the divisor is at least `std_floor`, or the mean of a group with one score of 1 if that
    is less; so it matters for graded scores only.
    """

    divides_by_mean: ClassVar[bool] = True

    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Weigh the centred rewards of every problem by 1 / its mean score."""
        whole_PG = group_advantages(
            scores_PG, penalties_PG, valid_PG, std_floor=std_floor, scale_by_std=False
        )
        varied_P1 = has_variance(scores_PG, valid_PG)[:, None]
        num_P1 = valid_PG.sum(dim=1, keepdim=True).clamp(min=1)
        mean_P1 = scores_PG.masked_fill(~valid_PG, 0.0).sum(dim=1, keepdim=True) / num_P1
        floor_P1 = (1.0 / num_P1).clamp(max=std_floor)
        divisor_P1 = mean_P1.maximum(floor_P1).clamp(min=STD_EPSILON)
        return torch.where(varied_P1, whole_PG / divisor_P1, whole_PG)
