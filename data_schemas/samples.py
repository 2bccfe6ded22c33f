"""Sampled responses: of an evaluation, one row of samples.parquet; as tokens, of grading."""

from enum import StrEnum

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Domain
from data_schemas.verdicts import Verdict

RESPONSES = "responses.parquet"
"""ResponseTokens: in a set that the embedded engine graded."""


class ResponseTokens(FrozenModel):
    """The tokens of a response, environments' included."""

    stream: str = Field(description="of its random numbers: the problem's id")
    sample: int = Field(ge=0, description="index within the stream")
    tokens: tuple[int, ...]


class RequestKind(StrEnum):
    """Whether a problem is there to see what a model refuses."""

    ORDINARY = ""
    HARMFUL = "harmful"
    """To be refused."""
    HARMLESS = "harmless"
    """To be answered, though it resembles a harmful one."""


class SampleResult(FrozenModel):
    """A response with its verdict. All evaluation metrics are computed from these rows."""

    problem_id: str
    domain: Domain
    language: str
    source: str
    sample: int = Field(ge=0, description="index among the responses to this problem")
    text: str = Field(description="decoded response, without end token")
    score: float | None = Field(description="of the verdict; None = the verifier abstained")
    reason: str
    tokens: int = Field(ge=0, description="generated, end token included")
    truncated: bool = Field(description="stopped by the token limit")
    surprisal_nats: float | None = Field(
        description="minus the sum of the tokens' log-probabilities; None = not known (endpoints)"
    )
    answer: str | None = Field(
        default=None,
        description="final answer in normal form, for majority@k; '' = none was found, "
        "None = answers to this problem cannot be counted, such as programs",
    )
    detail: str = Field(default="", description="of the verdict, for people")
    level: int = Field(default=0, ge=0, description="the problem's difficulty, 0 if it has none")
    request: RequestKind = RequestKind.ORDINARY

    @property
    def scored(self) -> bool:
        """True if there is a verdict."""
        return self.score is not None

    @property
    def solved(self) -> bool:
        """True if the task was achieved in full."""
        return Verdict(score=self.score, reason=self.reason).solved
