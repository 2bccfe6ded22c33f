"""Rewards from comparisons inside a group, and how often a reward model inverts advantages.

Source: CompassMax. A comparison is a number in [0, 1]: 1 if the row's answer wins, 0.5 for a
tie, 0 if it loses, NaN for a comparison without a verdict.
Differs: the paper compares with a reference answer; the round robin is for tasks without one.
Letters: G answers of one prompt.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_JUDGED_SHARE = 0.5
"""Smallest share of its comparisons that must have a verdict for an answer to get a reward: one
answer that cannot be judged must not invalidate the group, and a few comparisons are not enough."""
TIE = 0.5
"""Also the score of the anchor of a group, which ties with itself."""


def round_robin_rewards(wins_GG: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (wins + ties / 2) / comparisons for every answer, over those that have a verdict.

    Args:
        wins_GG: score of row i against column j; the diagonal is ignored.

    Returns:
        [G] in [0, 1]; NaN for an answer with less than half of its G - 1 comparisons, and for the
        only answer of a group.
    """
    others_GG = np.where(np.eye(len(wins_GG), dtype=bool), np.nan, wins_GG)
    judged_G = np.isfinite(others_GG).sum(axis=1)
    enough_G = (judged_G > 0) & (judged_G >= MIN_JUDGED_SHARE * (len(wins_GG) - 1))
    rewards_G = np.nansum(others_GG, axis=1) / np.maximum(judged_G, 1)
    return np.where(enough_G, rewards_G, np.nan)


@dataclass(frozen=True, slots=True)
class Inversion:
    """Disagreement between a reward model's estimates and the true qualities of one group."""

    flipped: int
    """Answers whose estimate is on the other side of the group's mean than the true quality."""
    answers: int
    """Answers whose true quality is not the mean."""
    discordant: int
    """Pairs in the opposite order."""
    pairs: int
    """All pairs, G (G - 1) / 2."""


TOLERANCE = 1e-9
"""Difference below which two numbers are the same: rounding of a mean, far below any score."""


def advantage_inversion(
    quality_G: NDArray[np.float64], estimate_G: NDArray[np.float64]
) -> Inversion:
    """Count flipped advantages and discordant pairs.

    A quality or an estimate within TOLERANCE of the mean, or of the other answer of a pair,
    has no direction, so a tie is not an inversion.
    """
    truth_G = _direction(quality_G - quality_G.mean())
    guess_G = _direction(estimate_G - estimate_G.mean())
    truth_GG = _direction(quality_G[:, None] - quality_G)
    guess_GG = _direction(estimate_G[:, None] - estimate_G)
    return Inversion(
        flipped=int((truth_G * guess_G < 0).sum()),
        answers=int((truth_G != 0).sum()),
        discordant=int((truth_GG * guess_GG < 0).sum()) // 2,
        pairs=len(quality_G) * (len(quality_G) - 1) // 2,
    )


def _direction(difference: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(difference) > TOLERANCE, np.sign(difference), 0.0)
