"""The files in a retraining inbox, and how far it has been read."""

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from data_schemas.artifacts import DatasetRef
from data_schemas.rl_settings import RLSettings


class InboxFile(BaseModel):
    """One file as it was listed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(min_length=1, description="path below the inbox, with forward slashes")
    uri: str = Field(description="absolute path or s3://bucket/key")
    modified: float = Field(description="Unix time it arrived, seconds")
    bytes: int = Field(ge=0)
    fingerprint: str = Field(description="changes with the content: ETag, or size and mtime")


class Watermark(BaseModel):
    """How far an inbox has been read. Initially `modified` is 0 and the key is empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    modified: float = Field(default=0.0, description="arrival of the newest processed file")
    key: str = Field(default="", description="that file")
    recent: tuple[InboxFile, ...] = Field(
        default=(), description="files processed near the mark, by key"
    )


class TakenFile(BaseModel):
    """One file of an intake, with the number of rows per outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str
    copy_name: str = Field(description="below the intake's folder")
    sha256: str
    bytes: int
    rows: int
    valid: int
    fresh: int = Field(description="valid rows that the released model was not trained on")


class Intake(BaseModel):
    """All new files of an inbox; intake.json. rows = valid + quarantined, valid = fresh + known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inbox: str
    files: tuple[TakenFile, ...]
    rows: int
    valid: int
    fresh: int
    quarantined: dict[str, int] = Field(description="rows per reason")


class Outcome(StrEnum):
    """What to do with new files."""

    LEARN = "learn"
    """Train on them."""
    WAIT = "wait"
    """Not enough yet: leave the watermark, look at them again with the next ones."""
    SKIP = "skip"
    """Nothing to learn from them: advance the watermark past them."""


class Decision(BaseModel):
    """Whether a retraining is worth its cost, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome
    reason: str


class Lesson(BaseModel):
    """New rows that are worth a phase of RL."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    curated: DatasetRef
    graded: DatasetRef
    phase: RLSettings = Field(description="fitted to the number of graded problems")


class Assessment(BaseModel):
    """The decision on the new files and, if they are worth training on, the lesson."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: Decision
    lesson: Lesson | None = Field(
        description="None if nothing is learned; the decision has the reason"
    )

    @model_validator(mode="after")
    def _there_is_a_lesson_exactly_if_it_is_to_be_learned(self) -> Self:
        if (self.lesson is not None) != (self.decision.outcome is Outcome.LEARN):
            raise ValueError(f"decision '{self.decision.outcome}' with lesson {self.lesson!r}")
        return self
