"""Sequences to padded micro-batches and back.

Letters: N sequences, T tokens.
"""

from collections.abc import Sequence

import torch


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
