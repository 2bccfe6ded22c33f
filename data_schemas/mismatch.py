"""How far rollout engine and trainer are apart, and what was decided about it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Decision(StrEnum):
    """What the mismatch gate lets a step do."""

    PROCEED = "proceed"
    CORRECT = "correct"
    """Train with importance weights (TIS or IcePop)."""
    PAUSE = "pause"
    """Stop the run: what was sampled is not what would be trained."""


class GateRecord(BaseModel):
    """The gate's decision on one step, kept by the release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    decision: Decision
    reason: str
    k3: float = Field(description="KL of trainer to rollout engine on the sampled tokens, nats")
    mean_abs_logprob: float
    extreme_share: float = Field(description="tokens whose probability differs more than twofold")
    effective_share: float = Field(description="effective sample size over tokens")
    route_disagreement: float | None = Field(
        description="share of (token, layer) routes that differ; None where replay hides it"
    )
    probe_logprob: float = Field(
        description="mean |dlogp| on canary sequences after the newest weight sync"
    )


class PhaseGates(BaseModel):
    """What the gate decided in a whole phase of RL."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'rl/one', 'rl/two' ...")
    steps: int = Field(ge=0, description="with a record; 0 = nothing is known")
    proceeded: int
    corrected: int
    paused: int
    max_k3: float
    max_probe: float = Field(description="largest mean |dlogp| on canaries, nats")
