"""A step's ledger rows: what every prompt that was drawn cost and contributed.

Conservation: over a phase, the generated tokens of all rows are the rollout engine's own count.
"""

from collections.abc import Sequence

import torch

from data_schemas.agent_turns import AgentTurn
from data_schemas.ledger import AgentLedgerRow, GroupOutcome, LedgerRow, PromptCost
from data_schemas.prompts import Problem
from tasks.algorithms.token_uses import token_uses
from tasks.rl.rollouts.collected import Collected, InFlight, Skipped
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.update.batch import StepBatch


def ledger_rows(
    collected: Collected, batch: StepBatch, advantages_NT: torch.Tensor
) -> list[LedgerRow]:
    """One row per prompt drawn: trained, surplus, in flight, skipped.

    Args:
        collected: the step.
        batch: made from `collected.trained`; its owners count in that order.
        advantages_NT: of the sequences of the batch.
    """
    mass_N = advantages_NT.abs().sum(dim=1).tolist()
    tokens_N = (advantages_NT != 0).sum(dim=1).tolist()
    step, trained = collected.step, collected.trained
    earned = [(0.0, 0)] * len(trained)
    for (place, _), mass, tokens in zip(batch.owners, mass_N, tokens_N, strict=True):
        earned[place] = (earned[place][0] + mass, earned[place][1] + tokens)
    surplus = [entry for entry in collected.groups if entry.outcome is GroupOutcome.SURPLUS]
    return [
        *(_finished(step, entry, *gain) for entry, gain in zip(trained, earned, strict=True)),
        *(_finished(step, entry, 0.0, 0) for entry in surplus),
        *(_in_flight(step, entry) for entry in collected.in_flight),
        *(_skipped(step, entry) for entry in collected.skipped),
    ]


def use_metrics(rows: Sequence[LedgerRow]) -> dict[str, float]:
    """Shares of the generated tokens by use; all 0 if nothing was generated."""
    uses = token_uses(rows)
    total = max(1, sum(uses.values()))
    return {f"tokens/{use}_share": count / total for use, count in uses.items()}


def prompt_costs(collected: Collected) -> list[PromptCost]:
    """Seconds and judge calls of every prompt that was rolled out."""
    return [
        PromptCost(
            step=collected.step,
            round=cost.round,
            problem_id=cost.problem_id,
            engine_seconds=cost.engine_seconds,
            verifier_seconds=cost.verifier_seconds,
            judge_calls=cost.judge_calls,
        )
        for cost in collected.costs
    ]


def _finished(step: int, entry: CollectedGroup, mass: float, trained: int) -> LedgerRow:
    items = entry.group.rollouts
    scores = _scores(entry)
    row = LedgerRow(
        step=step,
        round=entry.round,
        problem_id=entry.group.problem.id,
        domain=entry.group.problem.domain,
        outcome=entry.outcome,
        rollouts=len(items),
        prompt_tokens=len(items[0].rollout.prompt_tokens),
        generated_tokens=entry.new_tokens + entry.draft_tokens,
        draft_tokens=entry.draft_tokens,
        reused_tokens=entry.reused_tokens,
        saved_tokens=0,
        trained_tokens=trained,
        solved=sum(item.verdict.solved for item in items),
        abstained=sum(item.verdict.abstained for item in items),
        mean_score=sum(scores) / len(scores) if scores else 0.0,
        advantage_mass=mass,
        pass_rate_change=entry.pass_rate_change,
    )
    return _of_turn(row, entry.turn)


def _in_flight(step: int, entry: InFlight) -> LedgerRow:
    group = entry.group
    row = _without_verdicts(step, group.problem, group.round, GroupOutcome.IN_FLIGHT).model_copy(
        update={
            "prompt_tokens": len(group.rollouts[0].prompt_tokens) if group.rollouts else 0,
            "generated_tokens": entry.new_tokens + entry.draft_tokens,
            "draft_tokens": entry.draft_tokens,
        }
    )
    return _of_turn(row, group.turn)


def _of_turn(row: LedgerRow, turn: AgentTurn | None) -> LedgerRow:
    """Charge a turn's group to its agent and to the problem of its chain."""
    if turn is None:
        return row
    told = {"problem_id": turn.root, "agent": turn.agent, "key": turn.key, "parent": turn.parent}
    return AgentLedgerRow.model_validate(row.model_dump() | told)


def _skipped(step: int, entry: Skipped) -> LedgerRow:
    row = _without_verdicts(step, entry.problem, entry.round, entry.outcome)
    return row.model_copy(update={"saved_tokens": entry.saved_tokens})


def _without_verdicts(step: int, problem: Problem, draw: int, outcome: GroupOutcome) -> LedgerRow:
    return LedgerRow(
        step=step,
        round=draw,
        problem_id=problem.id,
        domain=problem.domain,
        outcome=outcome,
        rollouts=0,
        prompt_tokens=0,
        generated_tokens=0,
        draft_tokens=0,
        saved_tokens=0,
        trained_tokens=0,
        solved=0,
        abstained=0,
        mean_score=0.0,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    )


def _scores(entry: CollectedGroup) -> list[float]:
    verdicts = [item.verdict for item in entry.group.rollouts]
    return [verdict.score for verdict in verdicts if verdict.score is not None]
