"""What each prompt cost and earned, one row per prompt drawn in a step.

A LedgerRow holds what a repetition of the step must reproduce; seconds travel beside it in
PromptCost, as they differ from run to run.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Domain


class GroupOutcome(StrEnum):
    """What became of a prompt, by the stage that decided it (CompassMax A.4)."""

    SKIPPED_ZERO_VARIANCE = "skipped_zero_variance"
    """Stage 1: its record predicts a zero-variance group; not rolled out."""
    SKIPPED_BAND = "skipped_band"
    """Stage 1: its pass rate is outside the band of the curriculum's stage; not rolled out."""
    IN_FLIGHT = "in_flight"
    """Some responses reached the step's segment and go on in the next step."""
    UNSCORED = "unscored"
    """Stage 2: fewer than two rollouts have a verdict."""
    ZERO_VARIANCE_PARTIAL = "zero_variance_partial"
    """Stage 2: equal partial credit: no sign, no advantage."""
    ZERO_VARIANCE_JUDGED = "zero_variance_judged"
    """Stage 2: a judge found them all alike: no advantage, and RL-ZVP has no sign to go by."""
    NON_ZERO_VARIANCE = "non_zero_variance"
    """Stage 3: rewards differ: trained with group-relative advantages."""
    ZERO_VARIANCE_TRAINED = "zero_variance_trained"
    """Stage 3: all solved or all failed: trained with RL-ZVP."""
    ZERO_VARIANCE_IDLE = "zero_variance_idle"
    """Stage 3: all solved or all failed: in the batch, but RL-ZVP is off."""
    SURPLUS = "surplus"
    """Stage 3: flat and replaced by a refill: rolled out, not trained."""


SKIPPED = (GroupOutcome.SKIPPED_ZERO_VARIANCE, GroupOutcome.SKIPPED_BAND)
"""Never rolled out."""


class LedgerRow(BaseModel):
    """One prompt in one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    round: int = Field(ge=0, description="0 = first draw, then refills")
    problem_id: str
    domain: Domain
    outcome: GroupOutcome
    rollouts: int = Field(description="responses that ended in this step")
    prompt_tokens: int
    generated_tokens: int = Field(description="generated in this step, drafts included")
    draft_tokens: int = Field(description="of these, to learn how long responses will be")
    saved_tokens: int = Field(description="predicted for the group of a skipped prompt, else 0")
    trained_tokens: int = Field(description="response tokens with a non-zero advantage")
    solved: int
    abstained: int
    mean_score: float = Field(description="over rollouts with a verdict; 0 if none")
    advantage_mass: float = Field(description="sum of |advantage| over trained tokens")
    pass_rate_change: float = Field(
        description="share solved, minus that of the prompt's group before; 0 if there is none"
    )


class PromptCost(BaseModel):
    """What a ledger row took on the clock, and of a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    round: int = Field(ge=0)
    problem_id: str
    engine_seconds: float = Field(description="its share of the rollout time, by tokens")
    verifier_seconds: float
    judge_calls: int
