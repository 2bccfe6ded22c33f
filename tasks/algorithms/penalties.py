"""Reward shaping in addition to the verdict: over-long, repetitive and needlessly long responses.

Source: CompassMax-V3-Thinking section on zero-variance elimination names the two
penalties; the over-long term is DAPO's (Yu et al. 2025, eq. 13).
Differs: the papers give no repetition formula; this one uses the ratio of repeated 3-grams.
Differs: the over-long term is floored at -1; DAPO relies on generation stopping there.
The length reward is that of Kimi k1.5 (arXiv 2501.12599, section 2.3.3).
Differs: a response without a verdict has none, and is not among the lengths.

Shapes: N responses.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

REPETITION_NGRAM = 3
REPETITION_WINDOW = 4096
"""Tokens examined at the end of the response, where loops occur."""


def overlong_penalty(
    lengths_N: NDArray[np.int64], *, max_length: int, buffer: int
) -> NDArray[np.float64]:
    """Fall linearly from 0 to -1 over the last `buffer` tokens before `max_length`.

    Args:
        lengths_N: response lengths in tokens.
        max_length: from here on the penalty is -1.
        buffer: width of the ramp in tokens; 0 makes it a step beyond `max_length`.
    """
    beyond_N = np.asarray(lengths_N, dtype=np.float64) - (max_length - buffer)
    if buffer == 0:
        return np.where(beyond_N > 0, -1.0, 0.0)
    return -np.clip(beyond_N / buffer, 0.0, 1.0)


def length_reward(
    lengths_N: NDArray[np.int64], solved_N: Sequence[bool | None]
) -> NDArray[np.float64]:
    """Prefer the shorter responses of a group, from -0.5 to 0.5; a wrong one never gains by it.

    With l = 0.5 - (length - shortest) / (longest - shortest), a right response has l and a wrong
    one min(0, l).

    Args:
        lengths_N: of all responses to one prompt, in tokens.
        solved_N: None without a verdict.

    Returns:
        0 for all where all responses with a verdict are equally long, or one alone has a verdict.
    """
    decided_N = np.array([one is not None for one in solved_N], dtype=bool)
    tokens_N = np.asarray(lengths_N, dtype=np.float64)
    span = np.ptp(tokens_N[decided_N]) if decided_N.any() else 0.0
    if not span:
        return np.zeros(len(tokens_N))
    relative_N = 0.5 - (tokens_N - tokens_N[decided_N].min()) / span
    right_N = np.array([bool(one) for one in solved_N], dtype=bool)
    rewards_N = np.where(right_N, relative_N, np.minimum(0.0, relative_N))
    return np.where(decided_N, rewards_N, 0.0)


def repetition_ratio(
    tokens: Sequence[Hashable] | NDArray[np.integer],
    *,
    ngram: int = REPETITION_NGRAM,
    window: int = REPETITION_WINDOW,
) -> float:
    """Return 1 - distinct n-grams / all n-grams over the last `window` tokens.

    A response shorter than one n-gram gets 0.
    """
    recent = tokens[-window:]
    total = len(recent) - ngram + 1
    if total < 1:
        return 0.0
    plain = recent.tolist() if isinstance(recent, np.ndarray) else recent
    distinct = set(zip(*(plain[offset:] for offset in range(ngram)), strict=False))
    return 1.0 - len(distinct) / total


def repetition_penalty(
    ratios_N: NDArray[np.float64], *, start: float, weight: float, cap: float
) -> NDArray[np.float64]:
    """Penalise repetition beyond `start` in proportion, by at most `cap`; never above 0."""
    excess_N = np.maximum(0.0, np.asarray(ratios_N, dtype=np.float64) - start)
    return -np.minimum(cap, weight * excess_N)
