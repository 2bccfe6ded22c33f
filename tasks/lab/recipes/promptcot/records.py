"""Synthesised problems from concepts to preference pairs: one model per table."""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel

POOL = "pool.parquet"
"""WordedProblem: problems without a rationale, which EM finds."""
FRESH = "fresh.parquet"
"""WordedProblem: neither of these nor of the demonstrations; the likelihood is measured on them."""
WRITTEN = "written.parquet"
"""WrittenProblem."""
LABELLED = "labelled.parquet"
"""LabelledProblem."""
PAIRS = "pairs.parquet"
"""PreferencePair."""
RATIONALES = "rationales.parquet"
"""ChosenRationale."""


class WordedProblem(FrozenModel):
    """A problem and what it is about."""

    id: str
    concepts: str = Field(description="as a model reads them")
    problem: str


class ChosenRationale(FrozenModel):
    """What the E-step or the M-step takes for the rationale of a problem."""

    id: str = Field(description="of the problem")
    rationale: str
    reward: float | None = Field(description="of the E-step; None where it is decoded greedily")
    candidates: int = Field(description="ended and long enough")


class WrittenProblem(FrozenModel):
    """A decoded response to concepts."""

    id: str
    concepts: str
    response: str
    problem: str = Field(description="'' = left out")
    reason: str = Field(description="why it was left out; '' = kept")


class LabelledProblem(FrozenModel):
    """A written problem with the majority of the answers to it."""

    id: str
    problem: str
    label: str | None = Field(description="None: no answer, or a tie")
    votes: int
    of: int
    truth: str = Field(description="that the parser computes; nothing is trained on it")


class PreferencePair(FrozenModel):
    """A right and a wrong answer of one problem, by its label."""

    problem: str = Field(description="id")
    chosen: tuple[int, ...] = Field(description="response tokens")
    rejected: tuple[int, ...]
