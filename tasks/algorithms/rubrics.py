"""Rewards from lists of criteria, and the share of a list that a rollout prompt shows.

Source: RuscaRL (arXiv 2508.16949), score and scaffold. Rubric Anchors / Rubicon (2508.12790),
aggregation with veto and saturation.
Differs: Rubicon publishes no formula; this one is veto * sum w f(s) / sum w with
f(s) = (1 - exp(-c s)) / (1 - exp(-c)), c = 2.
Letters: G rollouts per problem.
"""

import math
from collections.abc import Sequence

from scipy.special import expit

from tasks.errors import DataError

SATURATION = 2.0
SWITCH_AT = 0.2
"""RuscaRL's x0: share of the training after which half of the scaffold is removed."""
STEEPNESS = 125.0
"""RuscaRL's alpha: nearly a step function."""


def ruscarl_score(points: Sequence[float], met: Sequence[bool]) -> float:
    """Return the points of met criteria over all positive points.

    At most 1, and negative if penalties outweigh; 0 if no criterion has positive points.
    """
    highest = sum(value for value in points if value > 0)
    if highest == 0:
        return 0.0
    return sum(value for value, is_met in zip(points, met, strict=True) if is_met) / highest


def rubicon_score(
    weights: Sequence[float],
    scores: Sequence[float],
    *,
    vetoed: bool,
    saturation: float = SATURATION,
) -> float:
    """Return the weighted mean of saturated scores in [0, 1]; 0 if a critical one failed.

    Args:
        weights: >= 0, not all 0.
        scores: in [0, 1].
        saturation: c > 0; the larger it is, the less the upper half of a score contributes.

    Raises:
        DataError: a weight is negative, or they sum to 0.
    """
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise DataError(f"weights must be >= 0 with a positive sum, got {list(weights)}")
    if vetoed:
        return 0.0
    full = -math.expm1(-saturation)
    achieved = sum(
        weight * -math.expm1(-saturation * score)
        for weight, score in zip(weights, scores, strict=True)
    )
    return min(achieved / (full * total), 1.0)


def scaffold_ratios(
    step: int,
    total_steps: int,
    group_size: int,
    *,
    switch_at: float = SWITCH_AT,
    steepness: float = STEEPNESS,
) -> list[float]:
    """Share of the criteria shown to every rollout of a group, [G], decreasing.

    The last rollout sees none; neither does the only rollout of a group of one.

    Args:
        step: from 1.
    """
    progress = (step - 1) / max(total_steps - 1, 1)
    by_step = float(expit(steepness * (switch_at - progress)))
    return [
        by_step * (group_size - 1 - sample) / max(group_size - 1, 1) for sample in range(group_size)
    ]


def num_shown(num_criteria: int, ratio: float) -> int:
    """Criteria to show; half rounds to even, as in RuscaRL's code."""
    return round(num_criteria * ratio)
