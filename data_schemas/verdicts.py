"""Result of a verifier: a score with its reason, or an abstention with its reason.

    scored(x, why)             the response was scored
    abstain(why)               it could not be scored for a cause outside the response: no score
    response_fault(why)        it could not be scored because it crashed, flooded or timed out
                               its verifier: score 0, with the reason `response_fault:why`

Differs: a response fault counts as a wrong answer, not as an abstention. Otherwise a policy
could replace a wrong answer (advantage below 0) by one that breaks the verifier (advantage 0). A
verifier first tries the next simpler way to score the response, if there is one.
"""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel

SCORE_TOLERANCE = 1e-6
"""Scores within this distance are equal: to 1 for a solved problem (RL-ZVP sign rule with graded
rewards), to each other for a zero-variance group."""
RESPONSE_FAULT = "response_fault:"
"""Prefix of the reason when the response itself made scoring impossible."""


class Verdict(FrozenModel):
    """The verifier's result on one response. `score is None` means the verifier abstained.

    An abstention is excluded, not scored 0: the rollout does not enter its group's mean and
    standard deviation, gets advantage 0 and is counted under its reason.
    """

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
        """True if the score is 0 because the response itself made scoring impossible."""
        return self.reason.startswith(RESPONSE_FAULT)


def scored(score: float, reason: str, detail: str = "") -> Verdict:
    """Build a verdict that has a score."""
    return Verdict(score=score, reason=reason, detail=detail)


def abstain(reason: str, detail: str = "") -> Verdict:
    """Build a verdict without a score, for a cause outside the response."""
    return Verdict(score=None, reason=reason, detail=detail)


def response_fault(reason: str, detail: str = "") -> Verdict:
    """Build the verdict on a response that crashed, flooded or timed out its verifier."""
    return Verdict(score=0.0, reason=RESPONSE_FAULT + reason, detail=detail)
