"""Gather complete results on every rank from the parts that each rank has computed.

Tensors are sent from CPU memory: they are small compared to the computation.

Letters: N sequences, T tokens, C tokens of all sequences end to end, R response positions,
M packed rows of one rank, L MoE layers, K experts per token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import distributed

from data_schemas.rollouts import MISSING_ROUTE
from tasks.engines.partial_batch import AnyBatch
from tasks.engines.process_group import gather_json
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron.micro_batches import MicroBatch
from tasks.engines.trainer_megatron.transfers import to_host

Metrics = dict[str, float]


class _JoinParts(torch.autograd.Function):
    """All-gather of parts; in the backward pass each rank receives the gradient of its part."""

    @staticmethod
    def forward(ctx, part, own, size, group):
        whole = part.new_zeros(size)
        whole[own] = part
        distributed.all_reduce(whole, group=group)
        ctx.save_for_backward(own)
        return whole

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx, slope
    ):
        (own,) = ctx.saved_tensors
        return slope[own], None, None, None


def join_parts(
    part: torch.Tensor, own: torch.Tensor, size: int, group: distributed.ProcessGroup
) -> torch.Tensor:
    """Join a vector from parts, differentiably.

    All ranks compute the same from the whole; each has the gradient of its own part, so that
    over all ranks every part is counted once.

    Args:
        own: positions [part] in the whole that this rank holds.
        size: of the whole.
    """
    return _JoinParts.apply(part, own, size, group)


class ResponseValues:
    """Values of response positions, set by the rank that computes them. Zero elsewhere."""

    def __init__(self, batch: AnyBatch) -> None:
        self._response_NT = batch.response_NT
        self._values_NT = torch.zeros(batch.response_NT.shape)

    def put(self, cells_R: tuple[torch.Tensor, torch.Tensor], values_R: torch.Tensor) -> None:
        """Set those of a micro-batch; cells are sequences and positions."""
        self._values_NT[cells_R] = values_R

    def gather(self) -> torch.Tensor:
        """All of them [N, T]; no two ranks may have set the same."""
        values_R = self._values_NT[self._response_NT]
        distributed.all_reduce(values_R)
        self._values_NT[self._response_NT] = values_R
        return self._values_NT


@dataclass(frozen=True, slots=True)
class RecordedRoutes:
    """What a rank's routers chose in the packed rows that it has of a micro-batch."""

    rows_N: torch.Tensor
    """Numbers of the sequences in the batch."""
    row_C: torch.Tensor
    """Which of the rows every token of theirs has; -1 is a row of another rank."""
    choice_MLK: torch.Tensor
    """int16, of the layers of this rank; not there before `wait_for` was called."""

    @classmethod
    def of(
        cls, micro: MicroBatch, rows_M: torch.Tensor, choice_MLK: torch.Tensor
    ) -> "RecordedRoutes":
        """Keep the choices, and none of the micro-batch's tensors but the numbers."""
        row_of = torch.full((len(micro.tokens_M),), -1)
        row_of[rows_M] = torch.arange(len(rows_M))
        return cls(micro.rows_N, row_of[micro.places_C], to_host(choice_MLK.to(torch.int16)))


def gather_routes(
    batch: AnyBatch,
    parts: Sequence[RecordedRoutes],
    *,
    places_L: Sequence[int],
    num_layers: int,
    k: int,
) -> torch.Tensor | None:
    """Gather expert choices, one layer at a time.

    Args:
        parts: of the micro-batches of this rank.
        places_L: indices in the model of this rank's MoE layers.

    Returns:
        int16 [N, T, num_layers, K]; MISSING_ROUTE behind the end of a sequence. None on a rank
        that holds a part of the batch only: it has no room for the routes of all.
    """
    real_NT = torch.arange(batch.response_NT.shape[1]) < batch.lengths_N[:, None]
    experts_NTLK = None
    if isinstance(batch, TokenBatch):
        shape = (*real_NT.shape, num_layers, k)
        experts_NTLK = torch.full(shape, MISSING_ROUTE, dtype=torch.int16)
    for layer in range(num_layers):
        choice_CK = torch.full((int(real_NT.sum()), k), MISSING_ROUTE, dtype=torch.int32)
        if layer in places_L:
            for part in parts:
                is_held_C = part.row_C >= 0
                choice_MK = part.choice_MLK[:, places_L.index(layer)].int()
                cells_C = _cells(batch, part.rows_N)[is_held_C]
                choice_CK[cells_C] = choice_MK[part.row_C[is_held_C]]
        distributed.all_reduce(choice_CK, distributed.ReduceOp.MAX)
        if experts_NTLK is not None:
            experts_NTLK[:, :, layer][real_NT] = choice_CK.to(torch.int16)
    return experts_NTLK


def sum_metrics(metrics: Metrics) -> Metrics:
    """Add up the metrics of all ranks, in the order of the ranks; names may differ."""
    totals: Metrics = {}
    for one in gather_json(metrics):
        add(totals, one)
    return totals


def add(totals: Metrics, metrics: Metrics) -> None:
    """Add metrics to totals, in place."""
    for name, amount in metrics.items():
        totals[name] = totals.get(name, 0.0) + amount


def _cells(batch: AnyBatch, rows_N: torch.Tensor) -> torch.Tensor:
    """The places of some sequences' tokens among the tokens of all sequences end to end."""
    first_N = batch.lengths_N.cumsum(0) - batch.lengths_N
    spans = [
        torch.arange(int(first_N[row]), int(first_N[row] + batch.lengths_N[row])) for row in rows_N
    ]
    return torch.cat(spans) if spans else torch.empty(0, dtype=torch.int64)
