"""Whether a reward that gives no gradient falls while the trained one rises.

Letters: S steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 4
"""Steps in each half, below which nothing is said."""
ERRORS = 3.0
"""Standard errors of a difference that is no chance [I]: 1 in 370 comparisons of steps that are
alike, if their means are normal. Steps draw other prompts, which is in their spread."""


@dataclass(frozen=True, slots=True)
class Change:
    """Mean of the second half of some steps minus that of the first."""

    before: float
    after: float
    error: float
    """Standard error of the difference, Welch's."""

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def low(self) -> float:
        return self.difference - ERRORS * self.error

    @property
    def high(self) -> float:
        return self.difference + ERRORS * self.error


def change(means_S: Sequence[float]) -> Change | None:
    """Compare the halves of some steps; None for fewer than 2 x FEWEST."""
    half = len(means_S) // 2
    if half < FEWEST:
        return None
    first, second = np.array(means_S[:half]), np.array(means_S[-half:])
    error = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / half)
    return Change(float(first.mean()), float(second.mean()), error)


def divergence(name: str, rewards_S: Sequence[float], monitor_S: Sequence[float]) -> str:
    """Say that the trained reward rises and a monitor falls; '' if either may be chance.

    Args:
        name: of the monitor.
        rewards_S: mean trained reward of every step.
        monitor_S: likewise of the monitor, in the same steps.
    """
    reward, monitor = change(rewards_S), change(monitor_S)
    if reward is None or monitor is None or reward.low <= 0.0 or monitor.high >= 0.0:
        return ""
    return (
        f"the trained reward rises ({reward.before:.3f} to {reward.after:.3f}) while the monitor "
        f"{name} falls ({monitor.before:.3f} to {monitor.after:.3f}): read responses before you "
        "trust the rise"
    )
