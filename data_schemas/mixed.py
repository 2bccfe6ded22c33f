"""What a retraining learns from: counts of new and replayed rows."""

from pydantic import BaseModel, ConfigDict, Field

REPORT = "mix.json"
ASIDE = "aside.json"
REPLAYED = "replayed.json"
"""Ids of the problems that are old; beside the tables of the mixed set."""


class Aside(BaseModel):
    """aside.json: files of a curated set that people have to look at; nothing learns from them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    curated: str = Field(default="", description="digest of the set")
    files: tuple[str, ...] = Field(default=(), description="sha256 of each")


class Mixed(BaseModel):
    """mix.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fresh: int = Field(description="new problems to train on")
    replayed: int = Field(description="old problems among them")
    held_out: int = Field(description="problems of all slices")
    added: int = Field(description="problems of the slice that is new; 0 = the month had one")
    slice: str = Field(description="its name; '' if there is none")
    demonstrations: int = Field(description="new ones, verified by curation")
    practised: int = Field(description="old ones beside them")
    parents: dict[str, int] = Field(description="demonstrations per parent")
    refused: dict[str, int] = Field(description="items dropped here, per reason")
