"""Group-relative advantages, and which groups have reward variance.

Source: GRPO (F.1 of DeepSeekMath's form), ESPO eq. 11 (rollouts without a verdict get 0 and
are excluded from the mean), CompassMax A.4.
Differs: population standard deviation (the papers do not specify it); whether a group has
variance is decided on the verdicts, never on shaped rewards or a floating-point std.
Letters: P problems, G rollouts per problem.
"""

from typing import Protocol

import torch

from data_schemas.rl_settings import AdvantageKind, RLSettings
from data_schemas.rows import SCORE_TOLERANCE
from tasks.algorithms.losses import table
from tasks.errors import DataError
from tasks.plugins import Table, load

STD_EPSILON = 1e-6


class Advantage(Protocol):
    """An advantage estimator: a row of rewards in, a row of advantages out.

    Contract: pure; finite; 0 where not valid. Those of this file give exact zeros to equal rewards.
    """

    def __call__(
        self,
        scores_PG: torch.Tensor,
        penalties_PG: torch.Tensor,
        valid_PG: torch.Tensor,
        *,
        std_floor: float,
    ) -> torch.Tensor:
        """Return advantages [P, G], finite.

        Args:
            scores_PG: verdict scores; any finite value where not valid.
            penalties_PG: reward shaping, <= 0.
            valid_PG: False where the verifier abstained.
            std_floor: smallest divisor, in reward units.
        """
        ...


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
        penalties_PG: reward shaping, <= 0.
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


def centred(
    scores_PG: torch.Tensor, penalties_PG: torch.Tensor, valid_PG: torch.Tensor, *, std_floor: float
) -> torch.Tensor:
    """Subtract the mean of the group and divide by nothing: Dr. GRPO (arXiv 2503.20783)."""
    return group_advantages(
        scores_PG, penalties_PG, valid_PG, std_floor=std_floor, scale_by_std=False
    )


def rloo(
    scores_PG: torch.Tensor, penalties_PG: torch.Tensor, valid_PG: torch.Tensor, *, std_floor: float
) -> torch.Tensor:
    """Subtract the mean of the other responses: RLOO (arXiv 2402.14740).

    The unbiased form of `centred`, which it exceeds by G / (G - 1). A response without others to
    compare it with gets 0.
    """
    whole_PG = centred(scores_PG, penalties_PG, valid_PG, std_floor=std_floor)
    num_P1 = valid_PG.sum(dim=1, keepdim=True)
    return whole_PG * num_P1 / (num_P1 - 1).clamp(min=1)


def maxrl(
    scores_PG: torch.Tensor, penalties_PG: torch.Tensor, valid_PG: torch.Tensor, *, std_floor: float
) -> torch.Tensor:
    """Centre and divide by the mean score of the group: MaxRL (arXiv 2602.02710).

    With scores of 1 and 0 its expectation is the gradient of log p to order G - 1, where that of
    `centred` is the gradient of p: prompts that are rarely solved weigh more. A group that is all
    wrong has zeros. Penalties are centred and divided, and no part of the divisor.
    Differs: the divisor is at least `std_floor`, or the mean of a group with one score of 1 if that
    is less; so it matters for graded scores only. Scores below 0 have no such mean: `rewards.maths:
    rule` is refused with it.
    """
    whole_PG = centred(scores_PG, penalties_PG, valid_PG, std_floor=std_floor)
    varied_P1 = has_variance(scores_PG, valid_PG)[:, None]
    num_P1 = valid_PG.sum(dim=1, keepdim=True).clamp(min=1)
    mean_P1 = scores_PG.masked_fill(~valid_PG, 0.0).sum(dim=1, keepdim=True) / num_P1
    floor_P1 = (1.0 / num_P1).clamp(max=std_floor)
    divisor_P1 = mean_P1.maximum(floor_P1).clamp(min=STD_EPSILON)
    return torch.where(varied_P1, whole_PG / divisor_P1, whole_PG)


ADVANTAGES: Table[Advantage] = Table(
    {"grpo": group_advantages, "centred": centred, "rloo": rloo, "maxrl": maxrl},
    lambda reference: load(reference, Advantage),
)
"""By name: a built-in one is a function and a line here."""


def find(settings: RLSettings) -> Advantage:
    """Return the estimator of a phase.

    Raises:
        SettingsError: there is none of that name, or a user's own is not of the form.
    """
    if settings.advantage == AdvantageKind.OF_LOSS:
        return ADVANTAGES[table.find(settings.loss).advantage]
    return ADVANTAGES.find(settings.advantage, "advantage")


def estimate(
    settings: RLSettings,
    scores_PG: torch.Tensor,
    penalties_PG: torch.Tensor,
    valid_PG: torch.Tensor,
) -> torch.Tensor:
    """Compute the advantages of a step [P, G] with the estimator of its phase.

    Raises:
        DataError: the estimator returned another shape, or a number that is not finite.
    """
    estimator, floor = find(settings), settings.zero_variance.std_floor
    advantages_PG = estimator(scores_PG, penalties_PG, valid_PG, std_floor=floor)
    if advantages_PG.shape != scores_PG.shape or not bool(advantages_PG.isfinite().all()):
        raise DataError(
            f"advantage {settings.advantage} returned {tuple(advantages_PG.shape)} with "
            f"{int((~advantages_PG.isfinite()).sum())} values that are not finite; it must return "
            f"{tuple(scores_PG.shape)} finite ones"
        )
    return advantages_PG.masked_fill(~valid_PG, 0.0)
