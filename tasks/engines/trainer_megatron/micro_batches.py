"""Division of a batch into micro-batches of packed sequences, per data-parallel rank.

Every sequence is assigned to one rank (longest first, to the least loaded rank), and a rank packs
its sequences end to end into micro-batches without padding. Pipeline and expert parallel ranks
work in lockstep, so all ranks have the same number of micro-batches: fillers have no sequences and
no weight. Replayed routes are not looked at: packing by them gains little
(`tasks.benchmarks.expert_loads`).

Letters: N sequences, T tokens, C tokens of all sequences end to end, M packed rows, R response
positions, L MoE layers, K experts per token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from tasks.algorithms.scheduling import assign, longest_first
from tasks.engines.partial_batch import AnyBatch
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.context import multiple_of


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
    """Packed rows of every sequence, in order; rows behind them are padding too."""

    @property
    def is_filler(self) -> bool:
        """Whether it only keeps this rank in lockstep with the others."""
        return not len(self.rows_N)

    @property
    def parts(self) -> tuple[int, ...]:
        """Lengths with the padding behind them as one more: they add up to all rows."""
        rest = len(self.tokens_M) - sum(self.lengths)
        return (*self.lengths, rest) if rest else self.lengths

    @property
    def places_C(self) -> torch.Tensor:
        """int64: packed row of every token, sequence after sequence."""
        sequence_C, position_C = self._real_NT.nonzero(as_tuple=True)
        return self._first_N[sequence_C] + position_C

    @property
    def real_M(self) -> torch.Tensor:
        """float: 1 for a token, 0 for padding."""
        return torch.zeros(len(self.tokens_M)).index_fill(0, self.places_C, 1.0)

    @property
    def at(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sequence and position of every response token."""
        sequence_R, position_R = self.batch.response_NT.nonzero(as_tuple=True)
        return sequence_R, position_R

    @property
    def tokens_R(self) -> torch.Tensor:
        """Response tokens."""
        return self.batch.tokens_NT[self.at]

    @property
    def before_R(self) -> torch.Tensor:
        """Packed row that predicts a response token."""
        sequence_R, position_R = self.at
        return self._first_N[sequence_R] + position_R - 1

    def routes_MLK(self) -> torch.Tensor | None:
        """Experts to replay in every packed row, in the layers that the micro-batch was cut for.

        Padding rows name K different experts: a token that names one twice would have less
        than its share of rows in a fused permutation.
        """
        experts_NTLK = self.batch.experts_NTLK
        if experts_NTLK is None:
            return None
        num_layers, k = experts_NTLK.shape[2:]
        routes_MLK = torch.arange(k).expand(len(self.tokens_M), num_layers, k).clone()
        routes_MLK[self.places_C] = experts_NTLK[self._real_NT].long()
        return routes_MLK

    @property
    def _real_NT(self) -> torch.Tensor:
        return _real(self.batch)

    @property
    def _first_N(self) -> torch.Tensor:
        """Packed row where every sequence begins."""
        lengths_N = torch.tensor(self.lengths, dtype=torch.int64)
        return lengths_N.cumsum(0) - lengths_N


def divide(
    lengths: Sequence[int], *, num_ranks: int, max_tokens: int
) -> list[list[tuple[int, ...]]]:
    """Divide sequences among data-parallel ranks and into micro-batches.

    Args:
        max_tokens: of a micro-batch; a longer sequence gets one of its own.

    Returns:
        Per rank, the sequences of its micro-batches. All ranks have the same number of them,
        at least one; () is a filler.
    """
    dealt = assign([float(length) for length in lengths], longest_first(lengths), num_ranks)
    packed = [_first_fit(lengths, jobs, max_tokens) for jobs in dealt]
    most = max(1, *(len(micros) for micros in packed))
    return [micros + [()] * (most - len(micros)) for micros in packed]


def cut(
    batch: AnyBatch,
    sequences: Sequence[int],
    *,
    layers: Sequence[int] | None = None,
    tensor: int = 1,
    context: int = 1,
) -> MicroBatch:
    """Pack some sequences of a batch; none make a filler.

    Args:
        layers: MoE layers whose routes are needed; None is all of them.
        tensor, context: ranks that share the rows, and how evenly these must divide.
    """
    rows_N = torch.tensor(sequences, dtype=torch.int64)
    part, piece = batch.select(rows_N, layers), multiple_of(context)
    lengths = tuple(_filled(int(length), piece) for length in part.lengths_N)
    width = max(tensor * piece, _filled(sum(lengths), tensor * piece))
    empty = MicroBatch(rows_N, part, torch.zeros(width, dtype=torch.int64), lengths)
    tokens_M = empty.tokens_M.index_copy(0, empty.places_C, part.tokens_NT[_real(part)])
    return replace(empty, tokens_M=tokens_M)


def _real(batch: TokenBatch) -> torch.Tensor:
    """bool [N, T]: True where there is a token."""
    return torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]


def _filled(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


def _first_fit(
    lengths: Sequence[int], jobs: Sequence[int], max_tokens: int
) -> list[tuple[int, ...]]:
    """Put every sequence into the first micro-batch that has room for it."""
    micros: list[list[int]] = []
    filled: list[int] = []
    for job in jobs:
        for place, tokens in enumerate(filled):
            if tokens + lengths[job] <= max_tokens:
                micros[place].append(job)
                filled[place] += lengths[job]
                break
        else:
            micros.append([job])
            filled.append(lengths[job])
    return [tuple(micro) for micro in micros]
