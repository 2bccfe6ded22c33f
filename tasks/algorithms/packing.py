"""Convert sequences to padded rows, and to packed rows without padding or repeated prefixes.

A packed row is one position that has to be computed. Padding is not computed, and a prefix
that two sequences share (above all the prompt of a group) is computed once: in a causal
model the hidden state of a token depends only on the tokens before it.

Letters: N sequences, T tokens, M packed rows, D features in addition to the token (routes).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Packing:
    """Which position of which sequence is computed in which packed row."""

    rows_NT: torch.Tensor
    """int64 packed row of every position; 0 on padding."""
    cells_M: torch.Tensor
    """int64 flat position n * T + t that a packed row was taken from."""
    copies_M: torch.Tensor
    """int64 number of positions that share the packed row."""


@dataclass(frozen=True)
class Prefixes:
    """Sequences in an order that has common prefixes next to each other.

    Two sequences share as many positions as the fewest that any neighbours between them share.
    """

    order: tuple[int, ...]
    """The sequence at every place of the order."""
    shared: tuple[int, ...]
    """Positions that it shares with the one at the place before; 0 at the first place."""

    @cached_property
    def place_of(self) -> dict[int, int]:
        """The place of every sequence."""
        return {sequence: place for place, sequence in enumerate(self.order)}

    def among(self, sequences: Sequence[int]) -> list[int]:
        """Positions that each of some sequences, in this order, shares with the one before it."""
        places = [self.place_of[sequence] for sequence in sequences]
        spans = [self.shared[one + 1 : other + 1] for one, other in pairwise(places)]
        return [0, *map(min, spans)] if places else []


def nothing_shared(num_sequences: int) -> Prefixes:
    """Prefixes of sequences that are computed in full."""
    return Prefixes(tuple(range(num_sequences)), (0,) * num_sequences)


def common_prefixes(
    tokens_NT: NDArray[np.int64],
    lengths_N: NDArray[np.int64],
    features_of: Callable[[int, int], NDArray[np.integer]] | None,
) -> Prefixes:
    """Order sequences by their tokens and features, ties as they come, and compare neighbours.

    Args:
        tokens_NT: right-padded.
        lengths_N: of the sequences.
        features_of: (sequence, R) -> features [R, D] of its first R tokens. They may be tens of GB:
            they are asked for as far as another sequence has the same tokens.
    """
    tokens = [row[:length] for row, length in zip(tokens_NT, lengths_N, strict=True)]
    order = _sorted([row.tobytes() for row in tokens])
    shared = _shared(order, tokens)
    if features_of is not None:
        reach = dict(zip(order, map(max, shared, [*shared[1:], 0]), strict=True))
        features = [features_of(index, reach[index]) for index in range(len(tokens))]
        order = _sorted([_key(*pair) for pair in zip(tokens, features, strict=True)])
        shared = _shared(order, tokens, features)
    return Prefixes(tuple(order), tuple(shared))


def _sorted(keys: Sequence[bytes]) -> list[int]:
    return sorted(range(len(keys)), key=keys.__getitem__)


def _key(tokens_T: NDArray[np.int64], features_RD: NDArray[np.integer]) -> bytes:
    """The tokens as bytes to sort by, the first R of them each with its features."""
    reach = len(features_RD)
    parts = (tokens_T[:reach, None], features_RD)
    units = [np.ascontiguousarray(part).view(np.uint8) for part in parts]
    return np.concatenate(units, axis=1).tobytes() + tokens_T[reach:].tobytes()


def _shared(order: Sequence[int], *columns: Sequence[NDArray[np.integer]]) -> list[int]:
    """Positions that each sequence shares with the one before it, in all columns."""
    pairs = [
        min(_equal_rows(rows[one], rows[other]) for rows in columns)
        for one, other in pairwise(order)
    ]
    return [0, *pairs] if order else []


def _equal_rows(one: NDArray[np.integer], other: NDArray[np.integer]) -> int:
    """Count the rows before the first in which two arrays differ."""
    length = min(len(one), len(other))
    differ_T = one[:length] != other[:length]
    if differ_T.ndim > 1:
        differ_T = differ_T.any(axis=1)
    return int(differ_T.argmax()) if differ_T.any() else length


def token_buckets(
    lengths_N: NDArray[np.int64], shared_N: NDArray[np.int64], max_tokens: int
) -> list[list[int]]:
    """Split sequences, in order, into runs of at most `max_tokens` packed rows.

    A longer sequence gets a run of its own; the first of a run shares no prefix.
    """
    buckets: list[list[int]] = []
    filled = 0
    for index, (length, shared) in enumerate(zip(lengths_N, shared_N, strict=True)):
        if buckets and filled + length - shared <= max_tokens:
            buckets[-1].append(index)
            filled += int(length - shared)
        else:
            buckets.append([index])
            filled = int(length)
    return buckets


def even_buckets(
    lengths_N: NDArray[np.int64], shared_N: NDArray[np.int64], max_tokens: int, parts: int
) -> list[list[int]]:
    """Split sequences like `token_buckets`, into parts that are as even as sequences allow.

    Args:
        lengths_N: of the sequences.
        shared_N: positions that each shares with the one before it.
        max_tokens: of a bucket; with fewer buckets one would have more.
        parts: buckets, unless `max_tokens` takes more.
    """
    parts = max(parts, len(token_buckets(lengths_N, shared_N, max_tokens)))
    low, high = 1, max_tokens
    while low < high:  # the fewest tokens that this number of buckets has room for
        middle = (low + high) // 2
        if len(token_buckets(lengths_N, shared_N, middle)) > parts:
            low = middle + 1
        else:
            high = middle
    return token_buckets(lengths_N, shared_N, low)


def pack(lengths_N: NDArray[np.int64], shared_N: NDArray[np.int64], width: int) -> Packing:
    """Number the positions to be computed, sequence after sequence.

    Args:
        shared_N: positions that each shares with the one before it; of the first, none.
        width: T of the padded sequences.
    """
    num_sequences = len(lengths_N)
    rows_NT = np.zeros((num_sequences, width), dtype=np.int64)
    cells: list[NDArray[np.int64]] = []
    packed = 0
    for index in range(num_sequences):
        length = int(lengths_N[index])
        shared = int(shared_N[index]) if index else 0
        rows_NT[index, :shared] = rows_NT[index - 1, :shared]
        rows_NT[index, shared:length] = np.arange(packed, packed + length - shared)
        cells.append(index * width + np.arange(shared, length))
        packed += length - shared
    inside_NT = np.arange(width) < lengths_N[:, None]
    copies_M = np.bincount(rows_NT[inside_NT], minlength=packed)
    cells_M = np.concatenate(cells) if cells else np.zeros(0, dtype=np.int64)
    return Packing(torch.from_numpy(rows_NT), torch.from_numpy(cells_M), torch.from_numpy(copies_M))


def length_buckets(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Split sequences into micro-batches of at most `max_tokens` padded tokens.

    Sequences are ordered by length, so a micro-batch pads little. A sequence longer
    than the budget gets a micro-batch of its own. Ties keep their order.
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    buckets: list[list[int]] = []
    current: list[int] = []
    for index in order:
        if current and (len(current) + 1) * lengths[index] > max_tokens:
            buckets.append(current)
            current = []
        current.append(index)
    if current:
        buckets.append(current)
    return buckets


def pad_rows(rows: Sequence[torch.Tensor], fill: float | int | bool) -> torch.Tensor:
    """Right-pad 1-d tensors to one [N, T] tensor of their dtype."""
    width = max((len(row) for row in rows), default=0)
    padded_NT = torch.full(
        (len(rows), width), fill, dtype=rows[0].dtype if rows else torch.tensor(fill).dtype
    )
    for index, row in enumerate(rows):
        padded_NT[index, : len(row)] = row
    return padded_NT
