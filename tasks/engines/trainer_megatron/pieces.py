"""Context parallelism: which packed rows of every sequence a rank holds.

A sequence is cut into 2C chunks for C ranks; rank r holds chunk r and chunk 2C-1-r, so that
causal attention costs every rank the same (the order Transformer Engine's attention expects
of packed rows). Tokens, routes and positions are all taken with `held_rows`.

Letters: M packed rows of this rank.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring rows of one sequence that one rank holds, numbered in the whole packed row."""

    sequence: int
    first: int
    """Where the sequence begins."""
    start: int
    stop: int


def multiple_of(context: int) -> int:
    """Length every packed sequence must be a multiple of; 1 without context parallelism."""
    return 1 if context == 1 else 2 * context


def pieces(lengths: Sequence[int], context: int, rank: int) -> Iterator[Piece]:
    """A rank's pieces in the order of its rows: two of every sequence, or all of each if C is 1.

    Args:
        lengths: of the packed sequences, padded to a multiple of 2C.
    """
    firsts = accumulate(lengths, initial=0)
    for number, (first, length) in enumerate(zip(firsts, lengths, strict=False)):
        if context == 1:
            yield Piece(number, first, first, first + length)
            continue
        assert length % multiple_of(context) == 0, f"{length} rows do not make {2 * context} chunks"
        size = length // (2 * context)
        for chunk in (rank, 2 * context - 1 - rank):
            yield Piece(number, first, first + chunk * size, first + (chunk + 1) * size)


def held_rows(lengths: Sequence[int], context: int, rank: int) -> torch.Tensor:
    """Rows of the whole packed row that a rank holds, in its own order: int64 [M]."""
    parts = pieces(lengths, context, rank)
    return torch.cat([torch.arange(piece.start, piece.stop) for piece in parts])
