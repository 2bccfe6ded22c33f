"""What a verifier says: a score with its reason, or an abstention with its reason.

Three cases, by what could be said and whose fault it is that more could not:

    scored(x, why)             the response was judged
    abstain(why)               it could not be, and not by its own fault: no score
    response_fault(why)        it could not be, because it broke, flooded or overran what judges
                               it: score 0, under the reason `response_fault:why`

Differs: the third is no abstention in what is trained on and counted, else a policy would escape
from a wrong answer (advantage below 0) to one that breaks the verifier (advantage 0). Before a
verifier says so, it tries the next simpler way to judge the response, if there is one.
"""

from pydantic import BaseModel, ConfigDict, Field

SCORE_TOLERANCE = 1e-6
"""Scores this close are equal: to 1 for a solved problem (RL-ZVP sign rule with graded rewards), to
each other for a zero-variance group."""
RESPONSE_FAULT = "response_fault:"
"""Starts the reason of a verdict on a response that made its own judgement impossible."""


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
        return self.score is not None and self.score >= 1.0 - SCORE_TOLERANCE

    @property
    def by_response_fault(self) -> bool:
        """True if the score is 0 because the response could not be judged, by its own fault."""
        return self.reason.startswith(RESPONSE_FAULT)


def scored(score: float, reason: str, detail: str = "") -> Verdict:
    """Build a verdict that has a score."""
    return Verdict(score=score, reason=reason, detail=detail)


def abstain(reason: str, detail: str = "") -> Verdict:
    """Build a verdict that refuses to score, for a cause that is not the response's fault."""
    return Verdict(score=None, reason=reason, detail=detail)


def response_fault(reason: str, detail: str = "") -> Verdict:
    """Build the verdict on a response that broke, flooded or overran its verifier."""
    return Verdict(score=0.0, reason=RESPONSE_FAULT + reason, detail=detail)
