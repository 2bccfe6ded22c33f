"""A problem with how well the start model does on it; one row of graded.parquet."""

from enum import StrEnum

from pydantic import Field

from data_schemas.prompts import Problem


class Band(StrEnum):
    """Difficulty by the start model's pass rate p."""

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
    """Every verdict was an abstention: nothing is known."""


class GradedProblem(Problem):
    """A Problem, so RL and evaluation take it as it is; the columns after `level` are new."""

    pass_rate: float | None = Field(
        ge=0.0, le=1.0, description="share of judged samples solved; None if none was judged"
    )
    mean_tokens: float = Field(ge=0.0, description="mean response length, end token included")
    band: Band
