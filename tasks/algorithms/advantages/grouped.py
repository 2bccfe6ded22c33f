"""Group-relative advantages, and which groups have reward variance.

Source: GRPO as in DeepSeekMath (arXiv 2402.03300), ESPO eq. 11 (rollouts without a verdict get 0
and are excluded from the mean), CompassMax.
Differs: population standard deviation (the papers do not specify it); whether a group has
variance is decided on the verdicts, never on shaped rewards or a floating-point std; the divisor
is at least `std_floor`.
Letters: P problems, G rollouts per problem.
"""

import torch

from data_schemas.verdicts import SCORE_TOLERANCE
from tasks.algorithms.advantages.protocol import Advantage
from tasks.errors import DataError

STD_EPSILON = 1e-6


def has_variance(scores_PG: torch.Tensor, valid_PG: torch.Tensor) -> torch.Tensor:
    """Decide for every problem whether its valid scores differ by more than the score tolerance.

    The decision rests on the scores: the standard deviation of equal floats need not be 0.

    Returns:
        bool [P]; False for a group with fewer than two valid rollouts.
    """
    highest_P = scores_PG.masked_fill(~valid_PG, -torch.inf).amax(dim=1)
    lowest_P = scores_PG.masked_fill(~valid_PG, torch.inf).amin(dim=1)
    return highest_P - lowest_P > SCORE_TOLERANCE


def group_advantages(
    scores_PG: torch.Tensor,
    penalties_PG: torch.Tensor,
    valid_PG: torch.Tensor,
    *,
    std_floor: float,
    scale_by_std: bool = True,
) -> torch.Tensor:
    """Centre every problem's rewards on that problem's own mean and scale by its spread.

    The reward is score + penalty. Where the scores are equal only the penalties are
    centred, and they are not divided: eight wrong answers that differ by a 0.02 length
    penalty must not get full-size advantages.

    Args:
        scores_PG: verdict scores; any finite value where not valid.
        penalties_PG: reward shaping; above 0 for short answers with `rewards.length_weight`.
        valid_PG: False where the verifier abstained.
        std_floor: smallest divisor, in reward units.
        scale_by_std: False only centres (Dr. GRPO: dividing favours prompts that are too easy
            or too hard).

    Returns:
        Advantages [P, G]; 0 where not valid, exact zeros for a group without
        variance in both score and penalty.

    Raises:
        DataError: the tensors are not [P, G] with G >= 2.
    """
    if scores_PG.ndim != 2 or scores_PG.shape[1] < 2:
        raise DataError(f"rewards must be [P, G] with G >= 2, got {tuple(scores_PG.shape)}")
    varied_P1 = has_variance(scores_PG, valid_PG)[:, None]
    rewards_PG = torch.where(varied_P1, scores_PG + penalties_PG, penalties_PG)
    spread_P1 = has_variance(rewards_PG, valid_PG)[:, None]
    num_P1 = valid_PG.sum(dim=1, keepdim=True).clamp(min=1)
    kept_PG = rewards_PG.masked_fill(~valid_PG, 0.0)
    mean_P1 = kept_PG.sum(dim=1, keepdim=True) / num_P1
    centred_PG = (rewards_PG - mean_P1).masked_fill(~valid_PG | ~spread_P1, 0.0)
    if not scale_by_std:
        return centred_PG
    std_P1 = (centred_PG.square().sum(dim=1, keepdim=True) / num_P1).sqrt()
    divisor_P1 = std_P1.clamp(min=std_floor) + STD_EPSILON
    return torch.where(varied_P1, centred_PG / divisor_P1, centred_PG)


def signed_scores(scores: torch.Tensor) -> torch.Tensor:
    """Turn scores of 1 and 0 into the rewards +1 and -1 (Compass-Thinker, arXiv 2508.08909)."""
    return 2.0 * scores - 1.0


class GroupAdvantage(Advantage):
    """GRPO's: centre and divide by the standard deviation of the group."""

    def estimate(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Standardise every problem's rewards."""
        return group_advantages(scores_PG, penalties_PG, valid_PG, std_floor=std_floor)
