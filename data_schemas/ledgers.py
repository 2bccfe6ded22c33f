"""What each prompt cost and contributed, one row per prompt drawn in a step.

A LedgerRow holds values that a replay of the step must reproduce; wall-clock seconds differ from
run to run and are in PromptCost.
"""

from enum import StrEnum

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rollouts import account_of
from data_schemas.rows import Domain


class GroupOutcome(StrEnum):
    """Outcome of a prompt, by the stage of zero-variance elimination (CompassMax)."""

    SKIPPED_ZERO_VARIANCE = "skipped_zero_variance"
    """Elimination stage 1: its record predicts a zero-variance group; not rolled out."""
    SKIPPED_BAND = "skipped_band"
    """Elimination stage 1: its pass rate is outside the current curriculum band; not rolled out."""
    SKIPPED_DOMAIN = "skipped_domain"
    """Elimination stage 1: other domains are further behind (group DRO); not rolled out."""
    IN_FLIGHT = "in_flight"
    """Some responses reached the segment limit and continue in the next step."""
    UNSCORED = "unscored"
    """Elimination stage 2: fewer than two rollouts have a verdict."""
    ZERO_VARIANCE_PARTIAL = "zero_variance_partial"
    """Elimination stage 2: equal partial credit; without a sign there is no advantage."""
    ZERO_VARIANCE_NOISE = "zero_variance_noise"
    """Verdicts differ, but no more than a recipe says that noise or errors of their verifier
    explain; without a sign there is no advantage."""
    ZERO_VARIANCE_JUDGED = "zero_variance_judged"
    """Elimination stage 2: the judge ranked all responses equal; RL-ZVP has no sign to use."""
    NON_ZERO_VARIANCE = "non_zero_variance"
    """Elimination stage 3: rewards differ; trained with group-relative advantages."""
    ZERO_VARIANCE_TRAINED = "zero_variance_trained"
    """Elimination stage 3: all solved or all failed; trained with RL-ZVP."""
    ZERO_VARIANCE_IDLE = "zero_variance_idle"
    """Elimination stage 3: all solved or all failed; in the batch, but RL-ZVP is off."""
    SURPLUS = "surplus"
    """Elimination stage 3: zero variance and replaced by a refill, or not chosen by a recipe of
    several agents; rolled out, not trained."""


class TokenUse(StrEnum):
    """What a generated token was used for. Every token of a step has exactly one use."""

    TRAINED = "trained"
    """In a group whose rewards differ, with an advantage and a weight in the loss."""
    TRAINED_ZVP = "trained_zvp"
    """In a zero-variance group, with an advantage by RL-ZVP."""
    TAUGHT = "taught"
    """With an advantage of a teacher, and none from rewards that differ."""
    REGULARISED = "regularised"
    """Without an advantage, but in the KL, entropy or router terms of the loss."""
    CUT = "cut"
    """Beyond C3PO's token budget, or in a response that it did not draw: in no term of the loss."""
    MASKED = "masked"
    """With an advantage, which the correction of the mismatch sets to 0 (IcePop)."""
    DROPPED = "dropped"
    """With an advantage, but of a low entropy that the loss does not train (`loss.drop_low`)."""
    SINGLETON = "singleton"
    """With an advantage, but the only token that top-p or top-k left: its gradient is 0."""
    NO_ADVANTAGE = "no_advantage"
    """In a trained group, but the advantage is 0 or the response has no verdict."""
    ZERO_VARIANCE = "zero_variance"
    """In a zero-variance group that trains nothing."""
    SURPLUS = "surplus"
    """In a group that a refill replaced, or that a recipe of several agents did not choose."""
    UNSCORED = "unscored"
    """In a group with fewer than two verdicts."""
    IN_FLIGHT = "in_flight"
    """In a response that continues in the next step."""
    DRAFT = "draft"
    """In a draft that estimates a response's length."""
    GRADING = "grading"
    """In a response of the start model that graded a problem, before any phase."""


TRAINED = (GroupOutcome.NON_ZERO_VARIANCE, GroupOutcome.ZERO_VARIANCE_TRAINED)
"""Changed weights."""
SKIPPED = (
    GroupOutcome.SKIPPED_ZERO_VARIANCE,
    GroupOutcome.SKIPPED_BAND,
    GroupOutcome.SKIPPED_DOMAIN,
)
"""Never rolled out."""


class LedgerRow(FrozenModel):
    """One prompt in one step."""

    step: int = Field(ge=1)
    round: int = Field(ge=0, description="0 = first draw, then refills")
    problem_id: str
    domain: Domain
    outcome: GroupOutcome
    rollouts: int = Field(description="responses completed in this step")
    prompt_tokens: int
    generated_tokens: int = Field(description="generated in this step, drafts included")
    draft_tokens: int = Field(description="of these, drafts that estimate response lengths")
    stale_tokens: int = Field(
        default=0,
        description="of its responses, sampled by an older policy than the one that was trained",
    )
    tokens_by_version: tuple[tuple[int, int], ...] = Field(
        default=(),
        description="(policy version, tokens of its responses that it sampled), oldest first",
    )
    saved_tokens: int = Field(description="predicted for the group of a skipped prompt, else 0")
    trained_tokens: int = Field(
        description="response tokens with a non-zero advantage and a weight in the loss"
    )
    taught_tokens: int = Field(
        default=0,
        description="of these, with a teacher's advantage and none from differing rewards",
    )
    cut_tokens: int = Field(default=0, description="response tokens beyond C3PO's budget")
    masked_tokens: int = Field(
        default=0, description="response tokens whose advantage the correction sets to 0"
    )
    dropped_tokens: int = Field(default=0, description="response tokens that drop_low leaves out")
    singleton_tokens: int = Field(
        default=0, description="response tokens that were alone in the set they were drawn from"
    )
    regularised_tokens: int = Field(
        default=0, description="without an advantage, in an auxiliary term of the loss"
    )
    keep_probability: float = Field(
        default=1.0, description="with which the prompt was rolled out, or would have been"
    )
    weight: float = Field(
        default=1.0, description="of its group in the loss, against the skips of its draw"
    )
    clipped_weight: bool = Field(
        default=False, description="the weight is less than the probability asks for"
    )
    solved: int
    abstained: int
    mean_score: float = Field(description="over rollouts with a verdict; 0 if none")
    advantage_mass: float = Field(description="sum of |advantage| over trained tokens")
    pass_rate_change: float = Field(
        description="share solved, minus that of the prompt's previous group; 0 if there is none"
    )

    @property
    def account(self) -> str:
        """Name what the row is charged to."""
        return self.problem_id


class AgentLedgerRow(LedgerRow):
    """One group of a phase with several agents; `problem_id` is that of the chain's problem."""

    agent: str = Field(description="the role in which the policy answered")
    key: str = Field(description="of the group: parent, agent, sample; '' = a prompt of the stream")
    parent: str = Field(description="key of the group that it follows; '' = a prompt of the stream")

    @property
    def account(self) -> str:
        """A verifier's verdicts are not the pass rate of the prompt."""
        return account_of(self.problem_id, self.agent)


class PromptCost(FrozenModel):
    """Wall-clock time and judge calls of a ledger row; `problem_id` is the row's account."""

    step: int = Field(ge=1)
    round: int = Field(ge=0)
    problem_id: str
    engine_seconds: float = Field(description="its share of the rollout time, by tokens")
    verifier_seconds: float
    judge_calls: int
