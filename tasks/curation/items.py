"""Records of curation: an item with the text of its row, and refusals.

An adapter wraps every raw row in the same instructions. Duplicates and leaks of held-out
prompts are therefore detected on the text of the row itself: `Item.content`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from data_schemas.rows import Demonstration, ItemKind, Outcome, Problem, QuarantinedItem
from tasks.store.files import sha256_bytes

DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Item:
    """A problem or demonstration that passes through the filters."""

    record: Problem | Demonstration
    content: str
    """Text of the row, without the instructions of the adapter."""
    source: int = 0
    """Position of its source in the settings: of two duplicates, the earlier source is kept."""
    facets: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What a source names besides, such as brand, price, subject, or a model's pass rate."""
    evaluation: bool = False
    """Part of a benchmark, which is held out as a whole."""
    answers: Problem | None = None
    """What the response of a demonstration answers; None = there is nothing to verify it with."""

    @property
    def kind(self) -> ItemKind:
        """Return whether the record is a problem or a demonstration."""
        if isinstance(self.record, Problem):
            return ItemKind.PROBLEM
        return ItemKind.DEMONSTRATION

    @property
    def response(self) -> str:
        """Return the response of a demonstration; '' for a problem."""
        return self.record.response if isinstance(self.record, Demonstration) else ""

    @property
    def answer_key(self) -> str:
        """The expected answer: equal prompts with different answers are not duplicates."""
        if isinstance(self.record, Problem):
            return f"{self.record.verifier}\n{self.record.answer}"
        return self.record.response.rpartition("</think>")[2]


def task_name(problem: Problem) -> str:
    """Name a task that another library plays by one word."""
    return sha256_bytes(problem.answer.encode())


Partition = tuple[list[Item], list[QuarantinedItem]]
"""Result of a filter: the kept items in order, and the refusals."""


def refuse(
    item: Item, stage: str, outcome: Outcome, reason: str, detail: str = ""
) -> QuarantinedItem:
    """Record why an item is left out."""
    return QuarantinedItem(
        stage=stage,
        outcome=outcome,
        kind=item.kind,
        source=item.record.source,
        key=item.record.id,
        reason=reason,
        detail=detail[:DETAIL_CHARACTERS],
        source_row=item.record.source_row,
    )


def refuse_row(
    source: str,
    key: str,
    source_row: str,
    reason: str,
    detail: str,
    outcome: Outcome = Outcome.QUARANTINED,
) -> QuarantinedItem:
    """Record why a raw row yields no item."""
    return QuarantinedItem(
        stage="read",
        outcome=outcome,
        kind=ItemKind.ROW,
        source=source,
        key=f"{source}/{key}",
        reason=reason,
        detail=detail[:DETAIL_CHARACTERS],
        source_row=source_row,
    )


def ticket(draw: str, seed: int, key: str) -> str:
    """Return the sort key of an id in a seeded draw: a hash that no other id influences."""
    return sha256_bytes(f"{draw}/{seed}/{key}".encode())
