"""A loss that records its calls, in any process.

Data-parallel ranks see different micro-batches, tensor-parallel ranks the same, and only the
last pipeline stage sees any: the calls of all ranks are merged by the sequences' numbers.

Letters: M sequences of a micro-batch, T tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from tasks.algorithms.router_shift import SHIFT
from tasks.engines.protocols import LossFn, TokenBatch

ROW = "row"
"""Column with the number of every sequence in the step's batch."""


@dataclass(frozen=True, slots=True)
class LossCall:
    """One call of the loss, for one micro-batch."""

    rows_M: torch.Tensor
    """Numbers of its sequences."""
    logprobs_MT: torch.Tensor
    value: torch.Tensor
    metrics: Mapping[str, float]
    shift_MT: torch.Tensor | None = None
    """RSPO's log gamma, where the trainer gave it."""

    @property
    def key(self) -> tuple[int, ...]:
        """The same on every rank that has the micro-batch."""
        return tuple(self.rows_M.tolist())


@dataclass(slots=True)
class RecordingLoss:
    """Wraps a loss and records its calls. Picklable if that loss is."""

    loss: LossFn
    calls: list[LossCall] = field(default_factory=list)

    def __call__(
        self, logprobs_MT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Compute the loss of a micro-batch whose sequences are numbered in the column ROW."""
        value, metrics = self.loss(logprobs_MT, batch)
        call = LossCall(
            rows_M=batch.columns[ROW].detach().cpu(),
            logprobs_MT=logprobs_MT.detach().cpu(),
            value=value.detach().cpu(),
            metrics=dict(metrics),
            shift_MT=batch.columns.get(SHIFT),
        )
        self.calls.append(call)
        return value, metrics

    def afresh(self) -> "RecordingLoss":
        """Record the same loss without the calls so far."""
        return RecordingLoss(self.loss)
