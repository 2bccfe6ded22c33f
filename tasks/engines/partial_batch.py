"""The part of a batch that a rank holds if every rank computes some sequences and layers.

At full scale the routes of a batch are tens of GB: only the rank that made the batch holds them
all. Every rank knows the lengths, response masks and common prefixes of all sequences, from
which it derives its share.

Letters: N sequences, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from tasks.algorithms.packing import Prefixes
from tasks.engines.protocols import TokenBatch
from tasks.errors import EngineError


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a batch that one rank computes."""

    buckets: tuple[tuple[int, ...], ...]
    """Numbers of its sequences, by micro-batch; () computes nothing."""
    layers: tuple[int, ...]
    """MoE layers whose routes it replays, counted over the whole model."""


NOTHING = Share(((),), ())


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """A batch of which one share is held. Sequences and layers keep their numbers in the batch."""

    lengths_N: torch.Tensor
    """Tokens of every sequence of the batch, held here or not."""
    response_NT: torch.Tensor
    route_shape: tuple[int, int] | None
    """MoE layers and experts per token of the whole batch; None without routes."""
    prefixes: Prefixes
    share: Share
    parts: tuple[TokenBatch, ...]
    """Sequences and layers of the share, in its order: each bucket as wide as its longest."""

    def select(self, rows: torch.Tensor, layers: Sequence[int] | None = None) -> TokenBatch:
        """Some of the sequences, cut to the longest of them, as TokenBatch.select.

        Raises:
            EngineError: they are not held in one bucket, or the routes of these layers are not.
        """
        places = rows.tolist()
        for bucket, part in zip(self.share.buckets, self.parts, strict=True):
            if set(bucket).issuperset(places):
                places_N = torch.tensor([bucket.index(row) for row in places], dtype=torch.int64)
                return part.select(places_N, self._places(layers))
        raise EngineError(
            f"sequences {places[:8]} are not held together by this rank, "
            f"which requested {self.share.buckets[:8]}"
        )

    def _places(self, layers: Sequence[int] | None) -> list[int] | None:
        """Find the positions of the requested layers among the held ones.

        Raises:
            EngineError: one of them is not held.
        """
        if self.route_shape is None:
            return None
        own_layers = self.share.layers
        requested = range(self.route_shape[0]) if layers is None else layers
        missing = [layer for layer in requested if layer not in own_layers]
        if missing:
            raise EngineError(
                f"routes of layers {missing} are not held by this rank, "
                f"which requested {list(own_layers)}"
            )
        return [own_layers.index(layer) for layer in requested]


AnyBatch = TokenBatch | PartialBatch


@runtime_checkable
class SharingTrainer(Protocol):
    """A Trainer of several ranks whose `score` and `update` take a PartialBatch as well."""

    def share(self, batch: AnyBatch) -> Share:
        """The share of a batch that this rank computes; the batch may hold no share yet.

        Raises:
            SettingsError, DataError: the routes are of another model.
        """
        ...


def outline(batch: TokenBatch) -> PartialBatch:
    """The outline of a batch, without any share."""
    nothing = batch.select(torch.empty(0, dtype=torch.int64), ())
    return PartialBatch(
        batch.lengths_N,
        batch.response_NT,
        batch.route_shape,
        batch.prefixes,
        NOTHING,
        (nothing,),
    )
