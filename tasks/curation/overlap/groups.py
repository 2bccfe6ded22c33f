"""Find rows with equal keys in columns of any length, in bounded memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

PART = 2_000_000
"""Keys that are sorted at once, about: 120 MB."""

Positions = NDArray[np.int64]


def equal(keys: NDArray[np.uint64], mask: NDArray[np.bool_]) -> Iterator[Positions]:
    """Yield the rows of every key that at least two of them have; ascending within a group.

    Args:
        keys: [all rows, 2], in memory or mapped from a file.
        mask: which rows to group.
    """
    parts = int(np.count_nonzero(mask)) // PART + 1
    for part in range(parts):
        mine = [
            some if parts == 1 else some[keys[some, 0] % np.uint64(parts) == part]
            for some in positions(mask)
        ]
        rows = np.concatenate([np.empty(0, np.int64), *mine])
        first, second = keys[rows, 0], keys[rows, 1]
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        is_same = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
        if not is_same.any():
            continue
        edges = np.flatnonzero(np.diff(np.r_[False, is_same, False].astype(np.int8)))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            yield rows[order[begin : end + 1]]


def positions(mask: NDArray[np.bool_]) -> Iterator[Positions]:
    """Yield the chosen rows, ascending, in parts."""
    for begin in range(0, len(mask), PART):
        yield np.flatnonzero(mask[begin : begin + PART]) + begin
