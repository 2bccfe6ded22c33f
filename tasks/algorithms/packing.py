"""Convert sequences to padded rows, and to packed rows without padding or repeated prefixes.

A packed row is one position that has to be computed. Padding is not computed, and a prefix
that two sequences share (above all the prompt of a group) is computed once: in a causal
model the hidden state of a token depends only on the tokens before it.

Letters: N sequences, T tokens, M packed rows, D features in addition to the token (routes).
"""

from collections.abc import Sequence
from dataclasses import dataclass

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


def prefix_order(
    tokens_NT: NDArray[np.int64],
    lengths_N: NDArray[np.int64],
    features_NTD: NDArray[np.int64] | None,
) -> list[int]:
    """Order sequences so that those with a common prefix are adjacent; ties keep their order."""
    units = tokens_NT[:, :, None]
    if features_NTD is not None:
        units = np.concatenate([units, features_NTD], axis=2)
    keys = [row[:length].tobytes() for row, length in zip(units, lengths_N, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def shared_prefixes(
    tokens_NT: NDArray[np.int64],
    lengths_N: NDArray[np.int64],
    features_NTD: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """Count the prefix positions each sequence shares with the one before it; 0 for the first."""
    same_NT = tokens_NT[1:] == tokens_NT[:-1]
    if features_NTD is not None:
        same_NT &= (features_NTD[1:] == features_NTD[:-1]).all(axis=2)
    shorter_N = np.minimum(lengths_N[1:], lengths_N[:-1])
    same_NT &= np.arange(tokens_NT.shape[1]) < shorter_N[:, None]
    shared_N = np.zeros(len(tokens_NT), dtype=np.int64)
    shared_N[1:] = np.logical_and.accumulate(same_NT, axis=1).sum(axis=1)
    return shared_N


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


def pack(lengths_N: NDArray[np.int64], shared_N: NDArray[np.int64], width: int) -> Packing:
    """Number the positions to be computed, sequence after sequence.

    Args:
        shared_N: from `shared_prefixes`; the first one is treated as 0.
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
