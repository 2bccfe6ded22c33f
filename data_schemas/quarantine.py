"""Refused rows, each with the reason; one row of quarantine.parquet."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Outcome(StrEnum):
    """Why an item is not in the curated set."""

    DROPPED = "dropped"
    """Valid but excluded: a duplicate, too long, or part of a held-out suite."""
    QUARANTINED = "quarantined"
    """Invalid: the producer of the row should look at it."""


class ItemKind(StrEnum):
    """Kind of the refused item."""

    ROW = "row"
    """A raw row from which no item could be made."""
    PROBLEM = "problem"
    DEMONSTRATION = "demonstration"


class Quarantined(BaseModel):
    """One refused item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'read', 'withdrawal', 'quality', 'dedup' ...")
    outcome: Outcome
    kind: ItemKind
    source: str = Field(description="adapter that read the row")
    key: str = Field(description="the item's id, or '<source>/<file>-<row>' where none was made")
    reason: str = Field(min_length=1, description="short stable code, e.g. 'near_duplicate'")
    detail: str = Field(
        default="", description="for people: the offending value, the duplicate's id"
    )
    source_row: str = Field(description="sha256 of the raw row's bytes")
