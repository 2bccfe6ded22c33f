"""pass@k, and bootstrap intervals of means over problems.

Sources: pass@k from Chen et al. 2021 (arXiv 2107.03374, eq. 1); percentile bootstrap from Efron
and Tibshirani 1993, chapter 13; sign test. The problem is the unit that is resampled, because
responses to one problem are not independent of each other.

Differs: the pass@k product runs over the k draws instead of over the c solved samples.
The result is the same, every factor lies in [0, 1], and no factorial is computed.

A percentile interval of few problems is too narrow: at a mean accuracy of 0.3 and 4 responses
each, the 95 % interval covered the truth in 94 % of simulated evaluations with 60 problems,
in 91 % with 10.

Letters: P problems, B bootstrap resamples, K draws.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.errors import DataError

CONFIDENCE = 0.95
"""Confidence level of the intervals in reports."""
RESAMPLES = 2000
"""Bootstrap resamples of an interval: about 50 lie beyond each of its ends."""
_CHUNK_CELLS = 2**20
"""Resampled values in memory at once: 8 MiB of indices and 8 MiB of values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over problems with its bootstrap interval."""

    mean: float
    low: float
    high: float


def pass_at_k(solved_P: ArrayLike, judged_P: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """Estimate per problem, without bias, the chance that at least one of k responses is right.

    Args:
        solved_P: responses that were right, 0 <= solved <= scored.
        judged_P: responses that have a verdict.
        k: draws, one number for all problems or one per problem.

    Returns:
        1 - C(scored - solved, k) / C(scored, k), one per problem; with k = scored this is
        1.0 if anything was solved, else 0.0. No problems give an empty array.

    Raises:
        DataError: k is below 1 or above the number of scored responses, or solved is out of range.
    """
    judged_P1 = np.asarray(judged_P, dtype=np.int64).reshape(-1, 1)
    wrong_P1 = judged_P1 - np.asarray(solved_P, dtype=np.int64).reshape(-1, 1)
    k_P1 = np.broadcast_to(np.asarray(k, dtype=np.int64).reshape(-1, 1), judged_P1.shape)
    if np.any(wrong_P1 < 0) or np.any(wrong_P1 > judged_P1):
        raise DataError("pass@k needs 0 <= solved <= scored responses for every problem")
    if np.any(k_P1 < 1) or np.any(k_P1 > judged_P1):
        raise DataError(
            f"pass@k needs 1 <= k <= scored responses, got k up to {k_P1.max()} "
            f"with {judged_P1.min()} scored. Sample at least k responses per problem."
        )
    draws_1K = np.arange(k_P1.max(initial=1)).reshape(1, -1)
    left_PK = np.maximum(judged_P1 - draws_1K, 1)
    factors_PK = np.maximum(wrong_P1 - draws_1K, 0) / left_PK
    return 1.0 - np.prod(factors_PK, axis=1, where=draws_1K < k_P1)


def bootstrap_mean(
    values_P: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Compute the mean of one value per problem with its percentile bootstrap interval.

    One problem, or equal values, give an interval of zero width.

    Raises:
        DataError: there is no problem, or a value is not finite.
    """
    values = np.asarray(values_P, dtype=np.float64).reshape(-1)
    if values.size == 0:
        raise DataError("the mean over 0 problems is undefined. Evaluate at least one problem.")
    if not np.all(np.isfinite(values)):
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"value {first} of {values.size} is {values[first]}, not a number")
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK_CELLS // values.size)
    means_B = np.concatenate(
        [
            values[
                generator.integers(0, values.size, (min(rows, resamples - start), values.size))
            ].mean(axis=1)
            for start in range(0, resamples, rows)
        ]
    )
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means_B, [tail, 1.0 - tail])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def paired_difference(
    candidate_P: ArrayLike,
    parent_P: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Compute the mean of candidate minus parent, both measured on the same problems.

    Resampling the differences keeps the pairing, so the difficulty that a problem has for both
    models cancels, and the interval is much narrower than two separate ones.

    Raises:
        DataError: the two sides differ in length, or `bootstrap_mean` rejects the difference.
    """
    candidate = np.asarray(candidate_P, dtype=np.float64).reshape(-1)
    parent = np.asarray(parent_P, dtype=np.float64).reshape(-1)
    if candidate.size != parent.size:
        raise DataError(
            f"a paired difference needs the same problems on both sides, "
            f"got {candidate.size} and {parent.size}"
        )
    return bootstrap_mean(candidate - parent, seed=seed, resamples=resamples, confidence=confidence)


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test; McNemar's exact test if scores are 0 or 1.

    Source: Conover 1999, section 3.4. Ties are left out; without any difference it is 1.

    Args:
        better: pairs in which the first side is higher.
        worse: pairs in which it is lower.

    Returns:
        Probability of a split at least so uneven if both are equally likely.
    """
    pairs = better + worse
    term, tail = 1, 1
    for count in range(min(better, worse)):
        term = term * (pairs - count) // (count + 1)
        tail += term
    return min(1.0, float(Fraction(2 * tail, 2**pairs)))
