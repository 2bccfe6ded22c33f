"""Rewards from lists of criteria.

Source: RuscaRL (arXiv 2508.16949), score. Rubric Anchors / Rubicon (2508.12790): veto, saturation,
interaction of dimensions, targeted shaping, samples from a central quantile.
Differs: Rubicon publishes no formula. Here [I], with f(s) = (1 - exp(-c s)) / (1 - exp(-c)), c = 2:
    score = veto * g((sum w_k f(s_k) + sum v_ij f(s_i) f(s_j)) / (sum w_k + sum max(v_ij, 0)))
and g stretches the scores above a knee.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError

SATURATION = 2.0


@dataclass(frozen=True, slots=True)
class Interaction:
    """A pair of dimensions that counts beyond its parts."""

    first: int
    second: int
    weight: float
    """v > 0: what both achieve together earns more; v < 0: it is counted once."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """Stretches the scores above a knee, where good answers differ little."""

    knee: float
    """In (0, 1)."""
    upper: float
    """Share of the reward's range that the scores above the knee take; 1 - knee changes nothing."""


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
    interactions: Sequence[Interaction] = (),
    shaping: Shaping | None = None,
) -> float:
    """Return the weighted mean of saturated scores in [0, 1]; 0 if a critical one failed.

    Args:
        weights: >= 0, not all 0.
        scores: in [0, 1].
        vetoed: a critical dimension failed.
        saturation: c > 0; the larger it is, the less the upper half of a score contributes.
        interactions: of pairs of dimensions, by number.
        shaping: of the result; None leaves it.

    Raises:
        DataError: a weight is negative, or they sum to 0.
    """
    if sum(weights) <= 0 or min(weights) < 0:
        raise DataError(f"weights must be >= 0 with a positive sum, got {list(weights)}")
    if vetoed:
        return 0.0
    full = -math.expm1(-saturation)
    saturated = [-math.expm1(-saturation * score) / full for score in scores]
    achieved = sum(weight * score for weight, score in zip(weights, saturated, strict=True))
    achieved += sum(
        pair.weight * saturated[pair.first] * saturated[pair.second] for pair in interactions
    )
    most = sum(weights) + sum(max(pair.weight, 0.0) for pair in interactions)
    score = min(max(achieved / most, 0.0), 1.0)
    return score if shaping is None else stretch(score, shaping)


def stretch(score: float, shaping: Shaping) -> float:
    """Map [0, knee] to [0, 1 - upper] and [knee, 1] to [1 - upper, 1]; rising, 0 and 1 stay."""
    knee, lower = shaping.knee, 1.0 - shaping.upper
    if score <= knee:
        return lower * score / knee
    return lower + shaping.upper * (score - knee) / (1.0 - knee)


def in_quantile_band(scores: Sequence[float], low: float, high: float) -> NDArray[np.bool_]:
    """Mark the scores between two quantiles of them, both included; (0, 1) keeps all.

    Rubicon keeps what a critic scores in a central quantile: what is learned already or noise is
    left out.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not values.size:
        return np.zeros(0, np.bool_)
    bottom, top = np.quantile(values, [low, high])
    return (values >= bottom) & (values <= top)
