"""A problem with the start model's pass rate; one row of graded.parquet."""

from enum import StrEnum

from pydantic import Field

from data_schemas.prompts import Problem


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
