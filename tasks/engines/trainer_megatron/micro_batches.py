"""Division of a batch into micro-batches of packed sequences, per data-parallel rank.

Sequences of one prompt are dealt together: a prefix that sequences of a micro-batch share is one
set of packed rows (algorithms/packing.py), which all but the core of attention computes once
(`PrefixAttention`). Such a group is assigned to one rank (largest first, to the least loaded
rank), which packs its sequences end to end into micro-batches without padding. Groups are split
where this balances the ranks. Pipeline and expert parallel ranks work in lockstep, so all ranks
have the same number of micro-batches: fillers have no sequences and no weight. How replayed
routes load the experts is not looked at: packing by it gains little (tasks/engines/README.md).

Context parallelism cuts sequences into chunks, and shares no prefix.

Letters: N sequences, T tokens, C tokens of all sequences end to end, M packed rows, W rows of
the core of attention, R response positions, L MoE layers, K experts per token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch

from tasks.algorithms.packing import Packing, Prefixes, nothing_shared, pack, token_buckets
from tasks.algorithms.scheduling import assign, longest_first
from tasks.engines.partial_batch import AnyBatch
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.pieces import multiple_of

ATTENTION_SHARE = 4
"""A row that only the core of attention computes counts as the fourth part of a packed row. It has
the queries, keys, values and outputs of a layer alone: less memory than that with the Transformer
Engine's kernels, of every model that has a preset (tests/capacity/test_memory.py)."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some sequences of a batch, packed end to end into the rows of one forward pass.

    Context parallelism cuts sequences, so each may be filled up to a length it can cut.
    """

    rows_N: torch.Tensor
    """Indices of its sequences in the batch; none for a filler."""
    batch: TokenBatch
    tokens_M: torch.Tensor
    """int64; padding is token 0."""
    lengths: tuple[int, ...]
    """Rows of every sequence in the core of attention, in order."""
    packing: Packing
    """Packing of these rows into packed rows; more packed rows behind them are padding too."""

    @property
    def is_filler(self) -> bool:
        """Whether it only keeps this rank in lockstep with the others."""
        return not len(self.rows_N)

    @property
    def num_padding(self) -> int:
        """Packed rows that are computed for no token: behind sequences, and behind all of them."""
        filled = sum(self.lengths) - int(self.batch.lengths_N.sum())
        return len(self.tokens_M) - len(self.packing.cells_M) + filled

    @property
    def parts(self) -> tuple[int, ...]:
        """Lengths with the padding behind them as one more: all rows of the core of attention."""
        rest = len(self.tokens_M) - len(self.packing.cells_M)
        return (*self.lengths, rest) if rest else self.lengths

    @property
    def places_C(self) -> torch.Tensor:
        """int64: packed row of every token, sequence after sequence."""
        real_NT = self.batch.real_NT
        return self.packing.rows_NT[:, : real_NT.shape[1]][real_NT]

    @property
    def copies_M(self) -> torch.Tensor:
        """float: number of tokens that share the packed row; 0 for padding."""
        return torch.zeros(len(self.tokens_M)).index_add(
            0, self.places_C, torch.ones(len(self.places_C))
        )

    def attention_rows(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Convert packed rows to those of the core of attention, and back.

        Returns:
            int64 [W], the packed row of every row of attention, and int64 [M], the first row of
            attention that is a packed row. None if they are the same, because nothing is shared.
        """
        rows_NT, cells_M = self.packing.rows_NT, self.packing.cells_M
        lengths_N, rows = torch.tensor(self.lengths), sum(self.lengths)
        if rows == len(cells_M):
            return None
        width = rows_NT.shape[1]
        padding = torch.arange(len(self.tokens_M) - len(cells_M))
        packed_W = rows_NT[torch.arange(width) < lengths_N[:, None]]
        first_N = lengths_N.cumsum(0) - lengths_N
        attention_M = first_N[cells_M // width] + cells_M % width
        return torch.cat([packed_W, len(cells_M) + padding]), torch.cat(
            [attention_M, rows + padding]
        )

    @property
    def before_R(self) -> torch.Tensor:
        """Packed row that predicts a response token."""
        sequence_R, position_R = self.batch.at
        return self.packing.rows_NT[sequence_R, position_R - 1]

    @property
    def cells_R(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Number in the whole batch of the sequence of a response token, and its position."""
        sequence_R, position_R = self.batch.at
        return self.rows_N[sequence_R], position_R

    def routes_MLK(self) -> torch.Tensor | None:
        """Experts to replay in every packed row, in the layers that the micro-batch was cut for.

        Padding rows name K different experts: a token that names one twice would have less
        than its share of rows in a fused permutation.
        """
        experts_NTLK = self.batch.padded_routes_NTLK
        if experts_NTLK is None:
            return None
        num_layers, k = experts_NTLK.shape[2:]
        routes_MLK = torch.arange(k).expand(len(self.tokens_M), num_layers, k).clone()
        routes_MLK[self.places_C] = experts_NTLK[self.batch.real_NT].long()
        return routes_MLK


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """The micro-batches of a rank. Each is cut when it is its turn, as it copies its sequences."""

    divided: Sequence[Sequence[int]]
    """Their sequences."""
    cut: Callable[[Sequence[int]], MicroBatch]

    def __len__(self) -> int:
        return len(self.divided)

    def __iter__(self) -> Iterator[MicroBatch]:
        return map(self.cut, self.divided)


def divide(
    lengths: Sequence[int],
    *,
    num_ranks: int,
    max_tokens: int,
    prefixes: Prefixes | None = None,
    prompts: Sequence[int] = (),
) -> list[list[tuple[int, ...]]]:
    """Divide sequences among data-parallel ranks and into micro-batches.

    Groups are dealt whole, or in pieces of at most a half, a fourth, ... of a micro-batch, down to
    single sequences: as the fullest ranks compute least.

    Args:
        max_tokens: of a micro-batch; a longer sequence gets one of its own. A shared token counts
            once, and then as 1 / ATTENTION_SHARE.
        prefixes: those of the sequences; None if nothing is to be shared.
        prompts: their lengths, by which a group is recognised; from `prompt_lengths`.

    Returns:
        Per rank, the sequences of its micro-batches, in the order of the prefixes. All ranks have
        the same number of them, at least one; () is a filler.
    """
    prefixes = prefixes or nothing_shared(len(lengths))
    saved = [shared - -(-shared // ATTENTION_SHARE) for shared in prefixes.shared]
    costs = _Costs(lengths, replace(prefixes, shared=tuple(saved)))
    groups = list(_groups(prefixes, prompts))
    divisions: list[list[list[tuple[int, ...]]]] = []
    limit = max_tokens
    while True:
        pieces = [piece for group in groups for piece in costs.pieces(group, limit)]
        divisions.append(_deal(costs, pieces, num_ranks, max_tokens))
        if len(pieces) == len(lengths):
            return min(divisions, key=costs.of_lockstep)
        limit //= 2


def prompt_lengths(batch: AnyBatch) -> list[int]:
    """Positions of every sequence before its first response token."""
    return (batch.response_NT.cumsum(1) == 0).sum(1).tolist()


def cut(
    batch: AnyBatch,
    sequences: Sequence[int],
    *,
    prefixes: Prefixes | None = None,
    layers: Sequence[int] | None = None,
    tensor: int = 1,
    context: int = 1,
) -> MicroBatch:
    """Pack some sequences of a batch; none make a filler.

    Args:
        sequences: in the order of the prefixes.
        prefixes: those that are to be shared; None shares nothing, as context parallelism needs it.
        layers: MoE layers whose routes are needed; None is all of them.
        tensor, context: ranks that share the rows, and how evenly these must divide.
    """
    assert context == 1 or prefixes is None, "context parallelism cuts sequences"
    rows_N = torch.tensor(sequences, dtype=torch.int64)
    part, piece = batch.select(rows_N, layers), multiple_of(context)
    lengths = [_filled(int(length), piece) for length in part.lengths_N]
    shared = prefixes.among(sequences) if prefixes else [0] * len(lengths)
    packing = pack(np.array(lengths), np.array(shared), max(lengths, default=0))
    width = max(tensor * piece, _filled(len(packing.cells_M), tensor * piece))
    tokens_M = torch.zeros(width, dtype=torch.int64)
    empty = MicroBatch(rows_N, part, tokens_M, tuple(lengths), packing)
    tokens_M = tokens_M.index_copy(0, empty.places_C, part.tokens_NT[part.real_NT])
    return replace(empty, tokens_M=tokens_M)


def _filled(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


def _groups(prefixes: Prefixes, prompts: Sequence[int]) -> Iterator[list[int]]:
    """Sequences that share at least half of a prompt: engines may compute its end for each alone.

    A prefix that is shorter, as the beginning of a chat template is, makes no group.
    """
    group: list[int] = []
    for sequence, shared in zip(prefixes.order, prefixes.shared, strict=True):
        if group and (not shared or 2 * shared < prompts[sequence]):
            yield group
            group = []
        group.append(sequence)
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class _Costs:
    """How much it takes to compute sequences together, in packed rows."""

    lengths: Sequence[int]
    saved: Prefixes
    """Rows of a sequence that cost nothing behind the sequence before it."""

    def of(self, sequences: Sequence[int]) -> int:
        """Saved rows of one micro-batch."""
        return sum(self.lengths[row] for row in sequences) - sum(self.saved.among(sequences))

    def of_lockstep(self, division: Sequence[Sequence[Sequence[int]]]) -> int:
        """Saved rows of the fullest rank's micro-batch, each time that all ranks compute one."""
        return sum(max(map(self.of, together)) for together in zip(*division, strict=True))

    def pieces(self, group: Sequence[int], limit: int) -> Iterator[list[int]]:
        """Split a group, in order, into pieces that cost at most the limit, or one sequence."""
        lengths = np.array([self.lengths[row] for row in group])
        for bucket in token_buckets(lengths, np.array(self.saved.among(group)), limit):
            yield [group[place] for place in bucket]


def _deal(
    costs: _Costs, pieces: Sequence[Sequence[int]], num_ranks: int, max_tokens: int
) -> list[list[tuple[int, ...]]]:
    """Assign pieces to ranks, the costliest first, and put them into micro-batches."""
    sizes = [costs.of(piece) for piece in pieces]
    dealt = assign([float(size) for size in sizes], longest_first(sizes), num_ranks)
    packed = [
        [
            tuple(
                sorted(chain(*(pieces[job] for job in jobs)), key=costs.saved.place_of.__getitem__)
            )
            for jobs in _first_fit(sizes, jobs, max_tokens)
        ]
        for jobs in dealt
    ]
    most = max(1, *map(len, packed))
    return [micros + [()] * (most - len(micros)) for micros in packed]


def _first_fit(sizes: Sequence[int], jobs: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Put every job into the first micro-batch that has room for it."""
    micros: list[list[int]] = []
    filled: list[int] = []
    for job in jobs:
        for place, tokens in enumerate(filled):
            if tokens + sizes[job] <= max_tokens:
                micros[place].append(job)
                filled[place] += sizes[job]
                break
        else:
            micros.append([job])
            filled.append(sizes[job])
    return micros
