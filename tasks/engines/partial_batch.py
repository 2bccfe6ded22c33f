"""What a rank holds of a batch where every rank computes some of its sequences and layers.

At full scale the routes of a batch are tens of GB: no rank but the one that made the batch can
hold them all. What every rank knows of all sequences is where they end and which tokens are
responses; with these it can say what its share is.

Letters: N sequences, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from tasks.engines.protocols import TokenBatch
from tasks.errors import EngineError


@dataclass(frozen=True, slots=True)
class Share:
    """What one rank computes of a batch."""

    rows: tuple[int, ...]
    """Numbers of its sequences."""
    layers: tuple[int, ...]
    """MoE layers whose routes it replays, counted over the whole model."""


NOTHING = Share((), ())


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """A batch of which one share is held. Sequences and layers have the numbers of the whole."""

    lengths_N: torch.Tensor
    """Of all sequences."""
    response_NT: torch.Tensor
    """Of all sequences."""
    route_shape: tuple[int, int] | None
    """MoE layers and experts per token of the whole; None without routes."""
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
        """What this rank computes of a batch, which may hold nothing yet.

        Raises:
            SettingsError, DataError: the routes are of another model.
        """
        ...


def outline(batch: TokenBatch) -> PartialBatch:
    """A batch of which nothing is held."""
    nothing = batch.select(torch.empty(0, dtype=torch.int64), ())
    return PartialBatch(batch.lengths_N, batch.response_NT, batch.route_shape, NOTHING, nothing)


def _places(asked: Sequence[int], held: Sequence[int], what: str) -> list[int]:
    """Where what is asked for stands in what is held.

    Raises:
        EngineError: it does not.
    """
    place_of = {number: place for place, number in enumerate(held)}
    missing = [number for number in asked if number not in place_of]
    if missing:
        raise EngineError(
            f"{what} {missing[:8]} are not held by this rank, which asked for {list(held)[:8]}"
        )
    return [place_of[number] for number in asked]
