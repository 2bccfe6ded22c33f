"""Records of curation: an item with its own text, and refusals.

An adapter wraps every raw row in the same instructions. Two prompts are alike, or a
held-out prompt is leaked, by what the row itself says: `Item.content`.
"""

from dataclasses import dataclass

from data_schemas.demonstrations import Demonstration
from data_schemas.prompts import Problem
from data_schemas.quarantine import ItemKind, Outcome, Quarantined
from tasks.store.files import sha256_bytes

_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Item:
    """A problem or demonstration on its way through the filters."""

    record: Problem | Demonstration
    content: str
    """The row's own words, without the adapter's instructions."""
    source: int = 0
    """Position of its source in the settings: of two alike, the earlier source wins."""

    @property
    def kind(self) -> ItemKind:
        """Say which of the two it is."""
        if isinstance(self.record, Problem):
            return ItemKind.PROBLEM
        return ItemKind.DEMONSTRATION

    @property
    def answer_key(self) -> str:
        """What the prompt is to be answered with: equal prompts with different answers differ."""
        if isinstance(self.record, Problem):
            return f"{self.record.verifier}\n{self.record.answer}"
        return self.record.response.rpartition("</think>")[2]


Sieved = tuple[list[Item], list[Quarantined]]
"""Result of a filter: the kept items in order, and the refusals."""


def refuse(item: Item, stage: str, outcome: Outcome, reason: str, detail: str = "") -> Quarantined:
    """Write down why an item is left out."""
    return Quarantined(
        stage=stage,
        outcome=outcome,
        kind=item.kind,
        source=item.record.source,
        key=item.record.id,
        reason=reason,
        detail=detail[:_DETAIL_CHARACTERS],
        source_row=item.record.source_row,
    )


def refuse_row(source: str, key: str, source_row: str, reason: str, detail: str) -> Quarantined:
    """Write down why a raw row yields nothing."""
    return Quarantined(
        stage="read",
        outcome=Outcome.QUARANTINED,
        kind=ItemKind.ROW,
        source=source,
        key=f"{source}/{key}",
        reason=reason,
        detail=detail[:_DETAIL_CHARACTERS],
        source_row=source_row,
    )


def ticket(draw: str, seed: int, key: str) -> str:
    """Give an id its place in a seeded draw: by hash, whatever else is in the draw."""
    return sha256_bytes(f"{draw}/{seed}/{key}".encode())
