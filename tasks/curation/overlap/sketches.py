"""MinHash (Broder 1997) with locality-sensitive hashing: which texts may be similar.

Differs: hash functions are multiply-shift (Dietzfelbinger et al. 1997) on hashes of 64 bits. A band
has the most rows with which a pair at the threshold is found with a probability of at least 99.9 %;
candidates are compared by their exact similarity, so too many of them cost time only.
"""

import numpy as np
from numpy.typing import NDArray

from tasks.curation.overlap.fingerprints import Hashes

PERMUTATIONS = 128
RECALL = 0.999
_AT_ONCE = 200_000
"""Shingles that are hashed at once, so that they stay in the cache of the CPU."""
_FACTORS = np.random.default_rng(1).integers(0, 2**63, PERMUTATIONS).astype(np.uint64) * 2 + 1


def rows_per_band(threshold: float) -> int:
    """Return the largest number of rows whose bands find a pair at the threshold."""
    fitting = [
        rows
        for rows in range(1, PERMUTATIONS + 1)
        if 1 - (1 - threshold**rows) ** (PERMUTATIONS // rows) >= RECALL
    ]
    return max(fitting, default=1)


def bands(shingles: Hashes, ends: NDArray[np.int64], threshold: float) -> Hashes:
    """Return the bands of texts: two texts are candidates if they share one in the same column.

    Args:
        shingles: of all texts, one text after the other; none is empty, repetitions do not matter.
        ends: where each text begins, and the last one ends.
        threshold: similarity of the pairs to find.

    Returns:
        [texts, bands].
    """
    texts, rows = len(ends) - 1, rows_per_band(threshold)
    result = np.zeros((PERMUTATIONS // rows, texts), np.uint64)
    begin = 0
    while begin < texts:
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + _AT_ONCE, "right")) - 1)
        values, starts = shingles[ends[begin] : ends[end]], ends[begin:end] - ends[begin]
        for place in range(len(result) * rows):
            smallest = np.minimum.reduceat((values * _FACTORS[place]) >> np.uint64(32), starts)
            band = result[place // rows, begin:end]
            band *= np.uint64(0x100000001B3)
            band ^= (smallest + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        begin = end
    return result.T
