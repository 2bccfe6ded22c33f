"""What the page of a running phase shows."""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.ledgers import PromptCost
from data_schemas.reports import StepReport, StepTiming


class ResponseView(FrozenModel):
    """One response, token by token."""

    tokens: tuple[str, ...]
    gaps: tuple[float, ...] = Field(
        description="log p of the trainer minus that of the rollout engine, nats; empty if the "
        "response was not in the batch, or nobody recorded them"
    )
    entropies: tuple[float, ...] = Field(description="of the trainer, nats; empty as above")
    logprobs: tuple[float, ...] = Field(description="of the rollout engine; empty as above")
    routes: tuple[str, ...] = Field(
        description="experts per MoE layer that predicted the token; empty without router replay"
    )
    environment: tuple[tuple[int, int], ...] = Field(
        default=(), description="tokens [first, end) that an environment wrote, of every answer"
    )
    score: float | None
    solved: bool
    reason: str
    detail: str
    penalty: float
    advantage: float | None = Field(
        description="mean over its tokens; None if the response was not in the batch"
    )
    stop_reason: str


class GroupView(FrozenModel):
    """All responses to one prompt of a step."""

    problem: str
    domain: str
    language: str
    prompt: str
    answer: str
    source_row: str = Field(description="sha256 of the raw row")
    outcome: str
    responses: tuple[ResponseView, ...]
    left_out: int = Field(default=0, ge=0, description="responses that are not on the page")


class StepView(FrozenModel):
    """Measurements of one step."""

    report: StepReport
    timing: StepTiming
    costs: tuple[PromptCost, ...]


class Responses(FrozenModel):
    """The responses of the newest step that fit the page."""

    step: int
    groups: tuple[GroupView, ...]
    left_out: int = Field(ge=0, description="groups of the step that are not on the page")
