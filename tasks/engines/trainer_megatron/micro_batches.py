"""A batch as micro-batches: which data-parallel rank computes which sequences, in which rows.

Every sequence goes to one rank (longest first, to the rank with the least so far), and a rank
packs its sequences end to end into micro-batches without padding. Pipeline and expert parallel
ranks work in step, so all ranks get the same number of micro-batches: fillers have no sequences
and no weight.

Letters: N sequences, T tokens, M packed rows, R response positions, L MoE layers, K experts
per token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from data_schemas.rollouts import MISSING_ROUTE
from tasks.algorithms.scheduling import assign, longest_first
from tasks.engines.protocols import TokenBatch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some sequences of a batch, packed end to end."""

    rows_N: torch.Tensor
    """Which of the batch; none for a filler."""
    batch: TokenBatch
    tokens_M: torch.Tensor
    """int64, padding (token 0) last."""
    lengths: tuple[int, ...]
    """Of the packed sequences, in order."""

    @property
    def is_filler(self) -> bool:
        """Whether it only keeps this rank in step with the others."""
        return not len(self.rows_N)

    @property
    def num_tokens(self) -> int:
        """Packed rows that are not padding."""
        return int(self.batch.lengths_N.sum())

    @property
    def real_NT(self) -> torch.Tensor:
        """bool: True where there is a token."""
        return torch.arange(self.batch.tokens_NT.shape[1]) < self.batch.lengths_N[:, None]

    @property
    def real_M(self) -> torch.Tensor:
        """float: 1 for a token, 0 for padding."""
        return (torch.arange(len(self.tokens_M)) < self.num_tokens).float()

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
        first_N = self.batch.lengths_N.cumsum(0) - self.batch.lengths_N
        return first_N[sequence_R] + position_R - 1

    def routes_MLK(self) -> torch.Tensor | None:
        """Experts to replay in every packed row, as the sequences have them.

        Padding rows name K different experts: a token that names one twice would have less
        than its share of rows in a fused permutation.
        """
        experts_NTLK = self.batch.experts_NTLK
        if experts_NTLK is None:
            return None
        num_layers, k = experts_NTLK.shape[2:]
        routes_MLK = torch.arange(k).expand(len(self.tokens_M), num_layers, k).clone()
        routes_MLK[: self.num_tokens] = experts_NTLK[self.real_NT]
        return routes_MLK


def divide(
    lengths: Sequence[int], *, num_ranks: int, max_tokens: int
) -> list[list[tuple[int, ...]]]:
    """Deal sequences out to data-parallel ranks and into micro-batches.

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


def cut(batch: TokenBatch, sequences: Sequence[int], *, multiple: int) -> MicroBatch:
    """Pack some sequences of a batch; none make a filler.

    Args:
        multiple: packed rows are padded to a multiple of this, and to one at least.
    """
    rows_N = torch.tensor(sequences, dtype=torch.int64)
    part = batch.select(rows_N)
    lengths = tuple(int(length) for length in part.lengths_N)
    used = sum(lengths)
    padding = max(multiple, -(-used // multiple) * multiple) - used
    real_NT = torch.arange(part.tokens_NT.shape[1]) < part.lengths_N[:, None]
    tokens_M = torch.cat([part.tokens_NT[real_NT], torch.zeros(padding, dtype=torch.int64)])
    return MicroBatch(rows_N, part, tokens_M, lengths)


def missing_rows(batch: TokenBatch) -> int:
    """Count the tokens that use the native router somewhere although routes are replayed.

    A sequence's last token does not count: nothing is predicted from it, and no rollout
    engine that stops there has routed it.
    """
    if batch.experts_NTLK is None:
        return 0
    missing_NT = (batch.experts_NTLK == MISSING_ROUTE).any(dim=3).any(dim=2)
    fed_NT = torch.arange(missing_NT.shape[1]) < batch.lengths_N[:, None] - 1
    return int((missing_NT & fed_NT).sum())


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
