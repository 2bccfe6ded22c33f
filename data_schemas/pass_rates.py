"""How often models solve a problem under its verifier, and which rates a source is trained on."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Problem

ANNOTATOR = "annotator"
"""Name of the facet that says who labelled a row."""
PASS_RATE = "pass_rate:"
"""Begins the name of a facet that has a model's pass rate: `pass_rate:small`."""


class SolveRate(FrozenModel):
    """What one model made of one problem; a line of solve_rates.jsonl."""

    problem: str = Field(description="its id")
    source: str
    source_row: str = Field(description="sha256 of the raw row that was answered")
    gold: str = Field(description="the answer that responses were verified against")
    model: str = Field(min_length=1)
    samples: int = Field(ge=1, description="responses")
    scored: int = Field(ge=0, description="responses with a verdict")
    solved: int = Field(ge=0, description="responses with full marks")

    @model_validator(mode="after")
    def _counts_are_nested(self) -> Self:
        if not self.solved <= self.scored <= self.samples:
            raise ValueError(
                f"{self.model} has {self.solved} solved, {self.scored} scored and {self.samples} "
                "samples of a problem; solved <= scored <= samples must hold"
            )
        return self

    @property
    def pass_rate(self) -> float | None:
        """Share of the responses with a verdict that are solved; None if none has one."""
        return self.solved / self.scored if self.scored else None


class PassRateBand(FrozenModel):
    """The pass rates of one model between which the problems of a source are kept; a line."""

    source: str = Field(description="adapter, or name of the mapping")
    model: str = Field(description="as solve_rates or a facet names it")
    lowest: float = Field(default=0.0, ge=0.0, le=1.0, description="included")
    highest: float = Field(default=1.0, ge=0.0, le=1.0, description="included")

    @model_validator(mode="after")
    def _something_is_inside(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"lowest is {self.lowest}, above highest, {self.highest}")
        return self

    @property
    def limits(self) -> str:
        """Return the limits in words."""
        return f"{self.lowest:g} to {self.highest:g}"


class Band(StrEnum):
    """Difficulty by a model's pass rate p; of a graded set, the start model's."""

    UNSOLVED = "unsolved"
    """p = 0"""
    HARD = "hard"
    """0 < p < 1/3"""
    MEDIUM = "medium"
    """1/3 <= p <= 2/3"""
    EASY = "easy"
    """2/3 < p < 1"""
    SOLVED = "solved"
    """p = 1"""
    UNGRADED = "ungraded"
    """Every verdict was an abstention: the pass rate is unknown."""


def band_of(pass_rate: float | None) -> Band:
    """Name the difficulty of a pass rate."""
    if pass_rate is None:
        return Band.UNGRADED
    if pass_rate in (0.0, 1.0):
        return Band.SOLVED if pass_rate else Band.UNSOLVED
    if pass_rate < 1 / 3:
        return Band.HARD
    return Band.EASY if pass_rate > 2 / 3 else Band.MEDIUM


PROBLEMS_FILE = "graded.parquet"


class GradedProblem(Problem):
    """A Problem with grading results, accepted wherever a Problem is."""

    pass_rate: float | None = Field(
        ge=0.0,
        le=1.0,
        description="share of samples with a verdict that were solved; None if none has one",
    )
    mean_tokens: float = Field(ge=0.0, description="mean response length, end token included")
    band: Band
