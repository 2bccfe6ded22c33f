"""The part of a batch that a rank holds if every rank computes some sequences and layers.

At full scale the routes of a batch are tens of GB: only the rank that made the batch holds them
all. Every rank knows the lengths, response masks and common prefixes of all sequences, from which
it derives its share.

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

    rows: tuple[int, ...]
    """Numbers of its sequences."""
    layers: tuple[int, ...]
    """MoE layers whose routes it replays, counted over the whole model."""


NOTHING = Share((), ())


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """A batch of which one share is held. Sequences and layers keep their numbers in the batch."""

    lengths_N: torch.Tensor
    """Of all sequences."""
    response_NT: torch.Tensor
    """Of all sequences."""
    route_shape: tuple[int, int] | None
    """MoE layers and experts per token of the whole batch; None without routes."""
    prefixes: Prefixes
    """Of all sequences."""
    share: Share
    held: TokenBatch
    """Sequences and layers of the share, in its order."""

    def select(self, rows: torch.Tensor, layers: Sequence[int] | None = None) -> TokenBatch:
        """Some of the sequences, cut to the longest of them, as TokenBatch.select.

        Raises:
            EngineError: they, or the routes of these layers, are not held.
        """
        places = _places(rows.tolist(), self.share.rows, "sequences")
        places_N = torch.tensor(places, dtype=torch.int64)
        if self.route_shape is None:
            return self.held.select(places_N)
        asked = range(self.route_shape[0]) if layers is None else layers
        return self.held.select(places_N, _places(asked, self.share.layers, "routes of layers"))


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
        nothing,
    )


def _places(asked: Sequence[int], held: Sequence[int], what: str) -> list[int]:
    """Find the positions of the requested numbers among the held ones.

    Raises:
        EngineError: one of them is not held.
    """
    place_of = {number: place for place, number in enumerate(held)}
    missing = [number for number in asked if number not in place_of]
    if missing:
        raise EngineError(
            f"{what} {missing[:8]} are not held by this rank, which requested {list(held)[:8]}"
        )
    return [place_of[number] for number in asked]
