"""Synthesised problems from concepts to preference pairs: one model per table."""

from pydantic import BaseModel, ConfigDict, Field

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


class WordedProblem(BaseModel):
    """A problem and what it is about."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    concepts: str = Field(description="as a model reads them")
    problem: str


class ChosenRationale(BaseModel):
    """What the E-step or the M-step takes for the rationale of a problem."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(description="of the problem")
    rationale: str
    reward: float | None = Field(description="of the E-step; None where it is decoded greedily")
    candidates: int = Field(description="ended and long enough")


class WrittenProblem(BaseModel):
    """A decoded response to concepts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    concepts: str
    response: str
    problem: str = Field(description="'' = left out")
    reason: str = Field(description="why it was left out; '' = kept")


class LabelledProblem(BaseModel):
    """A written problem with the majority of the answers to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    problem: str
    label: str | None = Field(description="None: no answer, or a tie")
    votes: int
    of: int
    truth: str = Field(description="that the parser computes; nothing is trained on it")


class PreferencePair(BaseModel):
    """A right and a wrong answer of one problem, by its label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="id")
    chosen: tuple[int, ...] = Field(description="response tokens")
    rejected: tuple[int, ...]
