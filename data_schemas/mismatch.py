"""Measured mismatch between rollout engine and trainer, and the gate's decision on it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Decision(StrEnum):
    """What the mismatch gate decides for a step."""

    PROCEED = "proceed"
    CORRECT = "correct"
    """Train with importance weights (TIS or IcePop)."""
    PAUSE = "pause"
    """Stop the run: rollout engine and trainer no longer compute the same policy."""


class GateRecord(BaseModel):
    """The gate's decision on one step; part of the release manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    decision: Decision
    reason: str
    k3: float = Field(description="KL of trainer to rollout engine on the sampled tokens, nats")
    mean_abs_logprob: float
    extreme_share: float = Field(description="tokens whose probability differs more than twofold")
    effective_share: float = Field(description="effective sample size over tokens")
    overflow_tokens: int = Field(
        default=0, ge=0, description="tokens without a finite log-probability in either engine"
    )
    route_disagreement: float | None = Field(
        description="share of (token, layer) routes that differ; None under router replay"
    )
    probe_logprob: float = Field(
        description="mean |dlogp| on canary sequences after the newest weight sync"
    )


class PhaseGates(BaseModel):
    """The gate's decisions over one phase of RL."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'rl/one', 'rl/two' ...")
    steps: int = Field(ge=0, description="steps with a record; 0 = no information")
    proceeded: int
    corrected: int
    paused: int
    max_k3: float
    max_probe: float = Field(description="largest mean |dlogp| on canaries, nats")
