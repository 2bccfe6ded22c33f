"""The leaves of the lineage chain: which raw files and rows a run read, by content."""

from typing import Literal

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.mappings import ColumnMapping
from data_schemas.suites import Suite

RAW_FILES = "raw_files.json"
"""List of RawFile."""


class RawFile(FrozenModel):
    """One raw file as it was when it was ingested; an entry of raw_files.json."""

    adapter: str = Field(description="a name that `eachprompt data` lists, or a mapping")
    uri: str = Field(description="absolute path, or relative to the folder of raw_files.json")
    sha256: str
    bytes: int = Field(ge=0)
    limit: int = Field(ge=0, description="first rows of its source to read, 0 = all")
    source: int = Field(ge=0, description="position of its source in CurationSettings.sources")
    mapping: ColumnMapping | None = Field(
        default=None, description="that reads the rows instead of an adapter of that name"
    )
    suite: Suite | None = Field(
        default=None, description="of a benchmark: how its problems are asked"
    )
    verifier: str | None = Field(
        default=None, description="scores the problems instead of the one that the adapter names"
    )
    evaluation: Literal[True] | None = Field(
        default=None, description="true: its problems are held out, all of them"
    )
    licence: str | None = Field(default=None, description="that its source states, if it does")
    responsible: str | None = Field(default=None, description="as licence")


class RowPlace(FrozenModel):
    """Where a raw row was read; the same bytes may lie in several places. A row of rows.parquet."""

    source_row: str = Field(description="sha256 of the raw row's bytes")
    file: str = Field(description="sha256 of the raw file, as in raw_files.json")
    number: int = Field(ge=1, description="of the row in its file; blank lines do not count")


class Part(FrozenModel):
    """Shards that one task maps: those of its number, modulo the number of parts."""

    number: int = Field(ge=0, description="from 0")
    of: int = Field(ge=1, description="parts")
