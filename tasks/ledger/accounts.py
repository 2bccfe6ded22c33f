"""Aggregate ledger rows per prompt and per group outcome."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from data_schemas.ledger import SKIPPED, GroupOutcome, LedgerRow, PromptCost
from data_schemas.prompts import Domain
from tasks.algorithms.group_size import GroupSize, predict_group_size
from tasks.errors import DataError

GROUP_SIZES = (4, 8, 16, 32)
"""Group sizes N in the printed table."""
STAGES = {
    "1 before rollout": (GroupOutcome.SKIPPED_ZERO_VARIANCE, GroupOutcome.SKIPPED_BAND),
    "2 at reward": (
        GroupOutcome.UNSCORED,
        GroupOutcome.ZERO_VARIANCE_PARTIAL,
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
"""Group outcomes by the step of zero-variance elimination that decides them (CompassMax A.4)."""


@dataclass(frozen=True, slots=True)
class PromptAccount:
    """Totals of one prompt over all its draws."""

    problem_id: str
    domain: Domain
    draws: int
    skips: int
    rollouts: int
    judged: int
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
    sizes: list[GroupSize]
    """Predicted results of other group sizes on these prompts; empty without verdicts."""
    totals: dict[str, float]


def settle(rows: Sequence[LedgerRow], costs: Sequence[PromptCost]) -> Ledger:
    """Sum cost and advantage per prompt and per group outcome.

    Raises:
        DataError: there are no rows, or a cost has no matching row.
    """
    if not rows:
        raise DataError("the ledger is empty: no prompt was drawn")
    rows_of: dict[str, list[LedgerRow]] = defaultdict(list)
    costs_of: dict[str, list[PromptCost]] = defaultdict(list)
    for row in rows:
        rows_of[row.problem_id].append(row)
    for cost in costs:
        costs_of[cost.problem_id].append(cost)
    unmatched = costs_of.keys() - rows_of.keys()
    if unmatched:
        raise DataError(f"{len(unmatched)} prompts have costs but no ledger row: {min(unmatched)}")
    prompts = [_account_of_prompt(mine, costs_of.get(name, [])) for name, mine in rows_of.items()]
    prompts.sort(key=lambda p: (-p.earned_per_kilotoken, p.generated_tokens, p.problem_id))
    outcomes = [
        _account_of_outcome(stage, outcome, [row for row in rows if row.outcome is outcome])
        for stage, members in STAGES.items()
        for outcome in members
    ]
    return Ledger(prompts, outcomes, _predict_sizes(prompts), _sum_totals(prompts))


def to_csv(prompts: Sequence[PromptAccount]) -> bytes:
    """Write one line per prompt, in order."""
    text = io.StringIO()
    names = [field.name for field in fields(PromptAccount)]
    writer = csv.DictWriter(text, [*names, "earned_per_kilotoken"], lineterminator="\n")
    writer.writeheader()
    for prompt in prompts:
        writer.writerow(asdict(prompt) | {"earned_per_kilotoken": prompt.earned_per_kilotoken})
    return text.getvalue().encode()


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


def _account_of_prompt(rows: Sequence[LedgerRow], costs: Sequence[PromptCost]) -> PromptAccount:
    return PromptAccount(
        problem_id=rows[0].problem_id,
        domain=rows[0].domain,
        draws=len(rows),
        skips=sum(row.outcome in SKIPPED for row in rows),
        rollouts=sum(row.rollouts for row in rows),
        judged=sum(row.rollouts - row.abstained for row in rows),
        solved=sum(row.solved for row in rows),
        generated_tokens=sum(row.generated_tokens for row in rows),
        saved_tokens=sum(row.saved_tokens for row in rows),
        trained_tokens=sum(row.trained_tokens for row in rows),
        advantage_mass=sum(row.advantage_mass for row in rows),
        pass_rate_change=sum(row.pass_rate_change for row in rows),
        engine_seconds=sum(cost.engine_seconds for cost in costs),
        verifier_seconds=sum(cost.verifier_seconds for cost in costs),
        judge_calls=sum(cost.judge_calls for cost in costs),
    )


def _account_of_outcome(
    stage: str, outcome: GroupOutcome, rows: Sequence[LedgerRow]
) -> OutcomeAccount:
    return OutcomeAccount(
        stage=stage,
        outcome=outcome,
        draws=len(rows),
        generated_tokens=sum(row.generated_tokens for row in rows),
        trained_tokens=sum(row.trained_tokens for row in rows),
        saved_tokens=sum(row.saved_tokens for row in rows),
        advantage_mass=sum(row.advantage_mass for row in rows),
    )


def _predict_sizes(prompts: Sequence[PromptAccount]) -> list[GroupSize]:
    known = [prompt for prompt in prompts if prompt.judged > 0]
    if not known:
        return []
    solved = [prompt.solved for prompt in known]
    judged = [prompt.judged for prompt in known]
    tokens = [prompt.generated_tokens / max(1, prompt.rollouts) for prompt in known]
    return [predict_group_size(solved, judged, tokens, size) for size in GROUP_SIZES]


def _sum_totals(prompts: Sequence[PromptAccount]) -> dict[str, float]:
    return {
        "prompts": float(len(prompts)),
        "draws": float(sum(prompt.draws for prompt in prompts)),
        "rollouts": float(sum(prompt.rollouts for prompt in prompts)),
        "solved": float(sum(prompt.solved for prompt in prompts)),
        "generated_tokens": float(sum(prompt.generated_tokens for prompt in prompts)),
        "trained_tokens": float(sum(prompt.trained_tokens for prompt in prompts)),
        "saved_tokens": float(sum(prompt.saved_tokens for prompt in prompts)),
        "advantage_mass": sum(prompt.advantage_mass for prompt in prompts),
        "engine_seconds": sum(prompt.engine_seconds for prompt in prompts),
        "verifier_seconds": sum(prompt.verifier_seconds for prompt in prompts),
        "judge_calls": float(sum(prompt.judge_calls for prompt in prompts)),
    }
