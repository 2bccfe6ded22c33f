"""Rates of complete explanations.

Source: "Simplifications are Absolutists" (arXiv 2507.11981) and its code. An explanation is full if
its definitions match every sense of the word, it has a marker if it says that it is not exhaustive
or asks which meaning is wanted, and it is complete with either; so complete = marker + full - both.

Differs: a row whose list of definitions and category disagree has no verdict. It is excluded and
counted, and the rates are also given with all of these rows wrong and all right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MATCHES_ABOVE = 0.4
"""Similarity above which a definition is a sense (the authors')."""


class Category(StrEnum):
    """How many meanings an explanation gives, as the judge says."""

    NONE = "None"
    ONE = "One"
    MULTIPLE = "Multiple"

    @classmethod
    def of(cls, definitions: int) -> "Category":
        """Return the category that a number of definitions has."""
        return (cls.NONE, cls.ONE, cls.MULTIPLE)[min(definitions, 2)]


@dataclass(frozen=True, slots=True)
class JudgedExplanation:
    """What a judge found in one explanation."""

    remark: bool
    """It says that not all meanings are listed."""
    request: bool
    """It asks which meaning is wanted."""
    category: Category
    definitions: int
    covered: int
    """Senses of the word that a definition matches."""
    senses: int

    @property
    def consistent(self) -> bool:
        """The category is that of the number of definitions."""
        return self.category is Category.of(self.definitions)

    @property
    def marker(self) -> bool:
        """It points to further meanings."""
        return self.remark or self.request

    @property
    def full(self) -> bool:
        """Its definitions match every sense."""
        return self.covered == self.senses

    @property
    def complete(self) -> bool:
        """It is full or has a marker."""
        return self.full or self.marker

    @property
    def aware(self) -> bool:
        """It gives several meanings, or has a marker."""
        return self.category is Category.MULTIPLE or self.marker


@dataclass(frozen=True, slots=True)
class CompletenessRates:
    """Shares of the judged explanations; 0 if none was judged."""

    judged: int
    dropped: int
    """Explanations without a verdict."""
    marker: float
    full: float
    both: float
    complete: float
    aware: float
    covered_mean: float
    """Mean share of a word's senses."""
    complete_if_dropped_are_wrong: float
    complete_if_dropped_are_right: float


def matched(similarity_DS: Sequence[Sequence[float]]) -> set[int]:
    """Return the senses that are found: each definition is that of its most similar sense.

    Args:
        similarity_DS: of every definition with every sense; of equally similar ones, the first.
    """
    best = ((max(row), row.index(max(row))) for row in similarity_DS)
    return {sense for similarity, sense in best if similarity > MATCHES_ABOVE}


def rates(rows: Sequence[JudgedExplanation | None]) -> CompletenessRates:
    """Aggregate explanations; None and inconsistent rows have no verdict."""
    judged = [row for row in rows if row is not None and row.consistent]
    dropped, most = len(rows) - len(judged), max(len(rows), 1)

    def share(flags: Sequence[bool]) -> float:
        return sum(flags) / max(len(flags), 1)

    complete = sum(row.complete for row in judged)
    return CompletenessRates(
        judged=len(judged),
        dropped=dropped,
        marker=share([row.marker for row in judged]),
        full=share([row.full for row in judged]),
        both=share([row.full and row.marker for row in judged]),
        complete=share([row.complete for row in judged]),
        aware=share([row.aware for row in judged]),
        covered_mean=sum(row.covered / row.senses for row in judged) / max(len(judged), 1),
        complete_if_dropped_are_wrong=complete / most,
        complete_if_dropped_are_right=(complete + dropped) / most,
    )
