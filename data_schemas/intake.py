"""The files in a retraining inbox, and what became of them."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.artifacts import NO_DATASET, NOT_GRADED, DatasetRef, GradedRef
from data_schemas.frozen_model import FrozenModel
from data_schemas.mappings import ColumnMapping
from data_schemas.rl_settings import RLSettings


class InboxFile(FrozenModel):
    """One file as it was listed."""

    key: str = Field(min_length=1, description="path below the inbox, with forward slashes")
    uri: str = Field(description="absolute path or s3://bucket/key")
    bytes: int = Field(ge=0)
    fingerprint: str = Field(description="of the content: sha256, or the ETag of S3")
    mapping: ColumnMapping | None = Field(default=None, description="that reads its rows")
    sha256: str = Field(default="", description="of its copy; '' until it is copied")
    refusals: int = Field(default=0, ge=0, description="refused models it was part of")
    approved_by: str = Field(default="", description="who looked at it and said yes; '' = nobody")


class FileStatus(StrEnum):
    """What became of a processed file."""

    TRAINED = "trained"
    """Part of a released model."""
    SKIPPED = "skipped"
    """Nothing to learn from it."""
    REFUSED = "refused"
    """Part of a model that the release gate refused; used again with the next new files."""
    HELD = "held"
    """People must look at it first: not read again under this name and content."""
    APPROVED = "approved"
    """People looked at it and said yes: read again in the next night."""
    REJECTED = "rejected"
    """People looked at it and said no: never read again, whatever its name."""


class Ruling(FrozenModel):
    """What somebody decided about held files; the settings of the stage that records it."""

    inbox: str
    files: dict[str, str] = Field(
        description="key -> what the file says, by which it is found under another name"
    )
    status: FileStatus = Field(description="approved or rejected")
    by: str = Field(min_length=1, description="who decided it")
    because: str = Field(min_length=1, description="why")


class SignedRuling(FrozenModel):
    """A ruling, and the record that a stage signed."""

    ruling: Ruling
    record: DatasetRef


class ProcessedFile(FrozenModel):
    """A file that is not new any more, as long as its content stays the same."""

    key: str
    fingerprint: str
    status: FileStatus
    refusals: int = Field(ge=0, description="refused models it was part of")
    execution: str = Field(description="that processed it last")
    content: str = Field(default="", description="what it says, in any store and under any name")


class ProcessedFiles(FrozenModel):
    """All processed files of an inbox, by key, and what people decided about held ones."""

    files: tuple[ProcessedFile, ...] = ()
    rulings: tuple[SignedRuling, ...] = Field(default=(), description="in order")


class TakenFile(FrozenModel):
    """One file that was copied out of the inbox."""

    uri: str
    adapter: str = Field(description="of curation, that reads it")
    copy_name: str = Field(description="below the intake's folder")
    sha256: str
    bytes: int
    refusals: int = Field(description="refused models it was part of; 0 = a new file")


class Intake(FrozenModel):
    """The files of a retraining; intake.json."""

    inbox: str
    files: tuple[TakenFile, ...]
    left: dict[str, str] = Field(description="key -> why the file is left for a later run")


class CurationCounts(FrozenModel):
    """What curation made of the files."""

    rows: int
    problems: int = Field(description="that can be trained on")
    fresh: int = Field(description="problems that the released model does not know")
    refused: dict[str, int] = Field(description="items dropped or quarantined, per reason")


class IntakeOutcome(StrEnum):
    """What to do with new files."""

    LEARN = "learn"
    """Train on them."""
    WAIT = "wait"
    """Not enough yet: look at them again with the next ones."""
    SKIP = "skip"
    """Nothing to learn from them: do not look at them again."""
    PEOPLE = "people"
    """People must look at some of them first, and the others alone are not enough."""


class IntakeDecision(FrozenModel):
    """Whether a retraining is worth its cost, and why."""

    outcome: IntakeOutcome
    reason: str
    held: tuple[str, ...] = Field(default=(), description="keys of files that people must look at")


class Examination(FrozenModel):
    """The decision on the rows of new files, and the curated set."""

    decision: IntakeDecision
    curated: DatasetRef = Field(description="NO_DATASET if no file was read")
    held: list[str] = Field(
        default=[], description="sha256 of files that people must look at; nothing learns from them"
    )


class Teaching(StrEnum):
    """How a retraining uses new demonstrations before RL."""

    SFT = "sft"
    """Fine-tune the released model on new and old ones together."""
    MERGE = "merge"
    """Fine-tune it once per parent and merge the two by TIES, as post_training does."""
    OFF = "off"
    """Verify and count them only."""


class Lesson(FrozenModel):
    """New rows that are worth a phase of RL; without rows there is no lesson."""

    curated: DatasetRef = NO_DATASET
    graded: GradedRef = NOT_GRADED
    phase: RLSettings = Field(description="fitted to the number of graded problems")
    teaching: Teaching = Field(
        default=Teaching.OFF, description="fine-tuning before RL; off without demonstrations"
    )


class Assessment(FrozenModel):
    """The decision on the new files, and the lesson: without rows if nothing is learned."""

    decision: IntakeDecision
    lesson: Lesson

    @model_validator(mode="after")
    def _there_is_a_lesson_exactly_if_it_is_to_be_learned(self) -> Self:
        is_lesson = self.lesson.curated != NO_DATASET and self.lesson.graded != NOT_GRADED
        if is_lesson != (self.decision.outcome is IntakeOutcome.LEARN):
            raise ValueError(f"decision '{self.decision.outcome}' with lesson {self.lesson!r}")
        return self
