"""What people decide about gold answers that models doubt."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    model_validator,
)

from data_schemas.frozen_model import FrozenModel


def _is_a_date(value: object) -> object:
    """Refuse digits alone: pydantic 2.14.3 reads "20260102" as seconds, a UTC time in 1970.

    See findings/pydantic_a_day_without_dashes_is_in_1970.sh.
    """
    if not isinstance(value, datetime) and not re.match(r"\d{4}-", str(value)):
        raise ValueError(f"{value} is no date. Write it as in 2026-01-02T03:04:05Z")
    return value


class GoldDecision(StrEnum):
    """About the gold answer of one problem."""

    NONE = ""
    """Not yet decided."""
    KEEP = "keep"
    DROP = "drop"
    CORRECT = "correct"


class Annotation(FrozenModel):
    """One line of the file."""

    problem: str = Field(description="its id")
    source: str
    source_row: str = Field(description="sha256 of the raw row that was shown")
    reason: str = Field(description="why the gold answer is doubtful")
    question: str
    gold: str = Field(description="the answer that was shown, as the verifier reads it")
    answers: dict[str, dict[str, int]] = Field(
        description="responses per model and answer; '' = no answer, or one that is not counted"
    )
    decision: GoldDecision = Field(default=GoldDecision.NONE, description="keep, drop or correct")
    correction: str = Field(default="", description="for correct: the right answer, as in `gold`")
    by: str = Field(default="", description="who decided")
    at: Annotated[AwareDatetime, BeforeValidator(_is_a_date)] | None = Field(
        default=None, description="when: ISO 8601 with a time zone"
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.decision is GoldDecision.NONE:
            return self
        if not self.by.strip() or self.at is None:
            raise ValueError("a decision needs `by` and `at`")
        if (self.decision is GoldDecision.CORRECT) != bool(self.correction.strip()):
            raise ValueError("`correction` is needed for correct, and for nothing else")
        if self.correction == self.gold:
            raise ValueError("`correction` is the gold answer; decide keep")
        return self

    @property
    def who(self) -> str:
        """Return who decided and when."""
        return f"{self.by} at {self.at.isoformat() if self.at else ''}"


class AppliedDecision(FrozenModel):
    """A decision that curation carried out; a row of decisions.parquet."""

    problem: str = Field(description="its id")
    source: str
    source_row: str
    decision: str
    gold: str = Field(description="the answer before")
    correction: str = Field(description="'' unless it was corrected")
    by: str
    at: str = Field(description="ISO 8601")
