"""Aggregate ledger rows per prompt and per group outcome."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from data_schemas.ledgers import SKIPPED, GroupOutcome, LedgerRow, PromptCost, TokenUse
from data_schemas.rows import Domain
from tasks.algorithms.group_size import (
    GroupSize,
    predict_group_size,
)
from tasks.algorithms.token_uses import token_uses
from tasks.errors import DataError

if TYPE_CHECKING:
    pass


GROUP_SIZES = (4, 8, 16, 32)
"""Group sizes N in the printed table."""
STAGES = {
    "1 before rollout": SKIPPED,
    "2 at reward": (
        GroupOutcome.UNSCORED,
        GroupOutcome.ZERO_VARIANCE_PARTIAL,
        GroupOutcome.ZERO_VARIANCE_NOISE,
        GroupOutcome.ZERO_VARIANCE_JUDGED,
    ),
    "3 at update": (
        GroupOutcome.NON_ZERO_VARIANCE,
        GroupOutcome.ZERO_VARIANCE_TRAINED,
        GroupOutcome.ZERO_VARIANCE_IDLE,
        GroupOutcome.SURPLUS,
    ),
    "later": (GroupOutcome.IN_FLIGHT,),
}
"""Group outcomes by the step of zero-variance elimination that decides them (CompassMax)."""
_TOKENS = ["generated_tokens", "trained_tokens", "saved_tokens"]
_OUTCOME_SUMS = ["draws", *_TOKENS, "advantage_mass"]
_PROMPT_SUMS = [*_OUTCOME_SUMS, "skips", "rollouts", "scored", "solved", "pass_rate_change"]
_COST_SUMS = ["engine_seconds", "verifier_seconds", "judge_calls"]
_PHASE_SUMS = ["draws", "rollouts", "solved", *_TOKENS, "advantage_mass", *_COST_SUMS]


@dataclass(frozen=True, slots=True)
class PromptAccount:
    """Totals of one prompt over all its draws; what other agents made of it is apart."""

    problem_id: str
    domain: Domain
    draws: int
    skips: int
    rollouts: int
    scored: int
    solved: int
    generated_tokens: int
    saved_tokens: int
    trained_tokens: int
    advantage_mass: float
    pass_rate_change: float
    """Pass rate of its last group minus that of its first."""
    engine_seconds: float
    verifier_seconds: float
    judge_calls: int

    @property
    def earned_per_kilotoken(self) -> float:
        """Sum of |advantage| per thousand generated tokens; 0 if none was generated."""
        return 1e3 * self.advantage_mass / max(1, self.generated_tokens)


@dataclass(frozen=True, slots=True)
class OutcomeAccount:
    """Totals of all draws with the same group outcome."""

    stage: str
    outcome: GroupOutcome
    draws: int
    generated_tokens: int
    trained_tokens: int
    saved_tokens: int
    advantage_mass: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """Aggregated ledger and costs of a phase."""

    prompts: list[PromptAccount]
    """Ordered by |advantage| per token, descending."""
    outcomes: list[OutcomeAccount]
    """Every outcome, by stage; zeros for outcomes that did not occur."""
    uses: dict[TokenUse, int]
    """Every use of the generated tokens, grading's too; the counts add up to all of them."""
    sizes: list[GroupSize]
    """Predicted results of other group sizes on these prompts; empty without verdicts."""
    totals: dict[str, float]


def settle(rows: Sequence[LedgerRow], costs: Sequence[PromptCost], grading: int = 0) -> Ledger:
    """Sum cost and advantage per prompt and per group outcome.

    Args:
        rows: of a phase.
        costs: of its prompts.
        grading: tokens that graded them; they are of the start model and of no draw.

    Raises:
        DataError: there are no rows, or a cost has no matching row.
    """
    if not rows:
        raise DataError("the ledger is empty: no prompt was drawn")
    draws = pd.DataFrame([row.model_dump() for row in rows]).assign(draws=1)
    prompted = set(draws["problem_id"])
    draws["problem_id"] = [row.account for row in rows]
    draws["skips"] = draws["outcome"].isin(SKIPPED).astype(int)
    draws["scored"] = draws["rollouts"] - draws["abstained"]
    spent = pd.DataFrame([cost.model_dump() for cost in costs], columns=[*PromptCost.model_fields])
    unmatched = set(spent["problem_id"]) - set(draws["problem_id"])
    if unmatched:
        raise DataError(f"{len(unmatched)} prompts have costs but no ledger row: {min(unmatched)}")
    prompts = _sum_prompts(draws, spent)
    # Group sizes are those of prompts: other agents' groups have inputs that are never drawn again.
    sizes = _predict_sizes([prompt for prompt in prompts if prompt.problem_id in prompted])
    uses = token_uses(rows, grading)
    return Ledger(prompts, _sum_outcomes(draws), uses, sizes, _sum_totals(prompts))


def to_csv(prompts: Sequence[PromptAccount]) -> bytes:
    """Write one line per prompt, in order."""
    earned = [prompt.earned_per_kilotoken for prompt in prompts]
    table = pd.DataFrame(prompts).assign(earned_per_kilotoken=earned)
    return table.to_csv(index=False, lineterminator="\n").encode()


def check_conservation(rows: Iterable[LedgerRow], generated_tokens: int) -> None:
    """Check the tokens in the ledger against the engine's own count.

    Raises:
        DataError: they differ: some generated tokens are not charged to any prompt.
    """
    charged = sum(row.generated_tokens for row in rows)
    if charged != generated_tokens:
        raise DataError(
            f"the ledger charges its prompts {charged} tokens, the engine generated "
            f"{generated_tokens}"
        )


def _sum_by(table: pd.DataFrame, key: str, names: Sequence[str]) -> pd.DataFrame:
    # The builtin sum adds floats in row order; the sum of pandas differs in the last digits.
    return table.groupby(key, sort=False).agg(dict.fromkeys(names, sum))


def _sum_prompts(draws: pd.DataFrame, spent: pd.DataFrame) -> list[PromptAccount]:
    sums = _sum_by(draws, "problem_id", _PROMPT_SUMS)
    costs = _sum_by(spent, "problem_id", _COST_SUMS).reindex(sums.index, fill_value=0)
    domains = draws.groupby("problem_id", sort=False)["domain"].first()
    records = sums.join(costs).reset_index().to_dict("records")
    prompts = [
        PromptAccount(domain=Domain(domain), **record)
        for domain, record in zip(domains, records, strict=True)
    ]
    prompts.sort(key=lambda p: (-p.earned_per_kilotoken, p.generated_tokens, p.problem_id))
    return prompts


def _sum_outcomes(draws: pd.DataFrame) -> list[OutcomeAccount]:
    sums = _sum_by(draws, "outcome", _OUTCOME_SUMS).reindex([*GroupOutcome], fill_value=0)
    records = sums.to_dict("index")
    return [
        OutcomeAccount(stage=stage, outcome=outcome, **records[outcome])
        for stage, members in STAGES.items()
        for outcome in members
    ]


def _predict_sizes(prompts: Sequence[PromptAccount]) -> list[GroupSize]:
    accounts = [prompt for prompt in prompts if prompt.scored > 0]
    if not accounts:
        return []
    solved = [prompt.solved for prompt in accounts]
    scored = [prompt.scored for prompt in accounts]
    tokens = [prompt.generated_tokens / max(1, prompt.rollouts) for prompt in accounts]
    return [predict_group_size(solved, scored, tokens, size) for size in GROUP_SIZES]


def _sum_totals(prompts: Sequence[PromptAccount]) -> dict[str, float]:
    sums = pd.DataFrame(prompts)[_PHASE_SUMS].agg(sum)
    return {"prompts": float(len(prompts)), **sums.astype(float).to_dict()}
