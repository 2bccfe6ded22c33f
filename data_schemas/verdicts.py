"""What a verifier says: a score with its reason, or an abstention with its reason."""

from pydantic import BaseModel, ConfigDict, Field

SOLVED_TOLERANCE = 1e-6
"""A score this close to 1 counts as solved (RL-ZVP sign rule with graded rewards)."""


class Verdict(BaseModel):
    """The judgement on one response. `score is None` means the verifier abstained.

    An abstention is not a zero: the rollout is left out of its group's mean and
    standard deviation, gets advantage 0 and is counted under its reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None = Field(ge=0.0, le=1.0, description="share of the task achieved")
    reason: str = Field(min_length=1, description="short stable code, e.g. 'correct', 'timeout'")
    detail: str = Field(default="", description="for people: what was compared, first failure")

    @property
    def abstained(self) -> bool:
        """True if there is no verdict."""
        return self.score is None

    @property
    def solved(self) -> bool:
        """True if the task was achieved in full."""
        return self.score is not None and self.score >= 1.0 - SOLVED_TOLERANCE


def scored(score: float, reason: str, detail: str = "") -> Verdict:
    """Build a verdict that has a score."""
    return Verdict(score=score, reason=reason, detail=detail)


def abstain(reason: str, detail: str = "") -> Verdict:
    """Build a verdict that refuses to score."""
    return Verdict(score=None, reason=reason, detail=detail)
