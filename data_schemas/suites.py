"""A benchmark as a data file: how its rows are read, how often it is asked, what is reported."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.frozen_model import FrozenModel
from data_schemas.mappings import ColumnMapping, placeholders

SUITES_FILE = "suites.json"
"""Suites of a curated set, beside its held-out problems."""


class Metric(StrEnum):
    """The number that stands for a suite; a report has all of them."""

    AVG = "avg"
    """avg@k: share of responses that solve their problem."""
    PASS = "pass"
    """pass@k, unbiased."""
    MAJORITY = "majority"
    """majority@k."""
    SCORE = "score"
    """Mean score, partial credit included."""


class Selection(FrozenModel):
    """Which rows are read, by the value of one column as text; none where it is blank."""

    equals: tuple[str, ...] = Field(default=(), description="one of these; empty = any")
    first: str = Field(default="", description="not before: a date as 2024-08-01")
    last: str = Field(default="", description="not after, to the precision given here")

    def __contains__(self, value: object) -> bool:
        text = "" if value is None else str(value)
        if not text or (self.equals and text not in self.equals):
            return False
        return text >= self.first and (not self.last or text[: len(self.last)] <= self.last)


class SuiteGroup(FrozenModel):
    """Suites that are evaluated together under one name."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    members: tuple[str, ...] = Field(
        min_length=1,
        description="suite=path in the folder of the group; without a path, one that is generated "
        "or another group",
    )


class Suite(FrozenModel):
    """What one file of a suite says."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="source of its problems")
    rows: str = Field(default="", description="adapter or mapping of the same name; '' = mapping")
    mapping: ColumnMapping | None = Field(default=None, description="instead of rows")
    select: dict[str, Selection] = Field(
        default_factory=dict, description="column -> rows that are read; others are dropped"
    )
    metric: Metric = Metric.AVG
    k: int = Field(
        default=0, ge=0, le=1024, description="responses per problem; 0 = evaluation.samples"
    )
    prompt: str = Field(default="{prompt}", description="form of the question: text and {prompt}")
    system: str = Field(default="", description="system message; '' = none")
    gold: dict[str, str] = Field(
        default_factory=dict,
        description="joined to every gold: how published scores read it, where rewards do not",
    )
    hub: tuple[str, str] | None = Field(
        default=None, description="dataset and task on the model hub, for .eval_results"
    )

    @model_validator(mode="after")
    def _problems_can_be_found_by_its_name(self) -> Self:
        if bool(self.rows) == (self.mapping is not None):
            raise ValueError("give rows, or a mapping")
        name = self.mapping.name if self.mapping else self.rows
        if name != self.name:
            raise ValueError(f"its rows are called {name!r}; give both the same name")
        if list(placeholders(self.prompt)) != ["prompt"]:
            raise ValueError("prompt needs {prompt}, once, and no other column")
        return self
