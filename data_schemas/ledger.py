"""What each prompt cost and earned, one row per prompt rolled out in a step."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Domain


class Fate(StrEnum):
    """What became of a group after its rewards were known."""

    CONTRAST = "contrast"
    """Rewards differ: trained with group-relative advantages."""
    ZERO_VARIANCE_TRAINED = "zero_variance_trained"
    """All solved or all failed: trained with RL-ZVP."""
    ZERO_VARIANCE_IDLE = "zero_variance_idle"
    """All solved or all failed: in the batch, but RL-ZVP is off."""
    FLAT_PARTIAL = "flat_partial"
    """Equal partial credit: no sign, no advantage."""
    SURPLUS = "surplus"
    """Flat and replaced by a refill: rolled out, not trained."""
    UNSCORED = "unscored"
    """Fewer than two rollouts have a verdict."""


class LedgerRow(BaseModel):
    """One prompt in one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    round: int = Field(ge=0, description="0 = first draw, then refills")
    problem_id: str
    domain: Domain
    fate: Fate
    rollouts: int
    prompt_tokens: int
    generated_tokens: int
    trained_tokens: int = Field(description="response tokens with a non-zero advantage")
    solved: int
    abstained: int
    mean_score: float = Field(description="over rollouts with a verdict; 0 if none")
    advantage_mass: float = Field(description="sum of |advantage| over trained tokens")
