"""Outcome of a group after scoring: stages 2 and 3 of zero-variance elimination.

Decided on correctness alone: shaping must not hide that a group has zero variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from data_schemas.agent_turns import AgentTurn
from data_schemas.ledger import GroupOutcome
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import RolloutGroup
from data_schemas.verdicts import SCORE_TOLERANCE
from tasks.algorithms.advantages import has_variance
from tasks.errors import EngineError
from tasks.rewards.protocol import JUDGED

PARENT_ABSTAINED = "parent_abstained"
"""Reason of a turn's abstention: it was made from a response without a verdict, which is counted
once, where it happened."""


@dataclass(frozen=True, slots=True)
class CollectedGroup:
    """A group with its draw, its cost and its outcome."""

    group: RolloutGroup
    round: int
    outcome: GroupOutcome
    new_tokens: int = 0
    """Generated in this step; fewer than all where a response began in an earlier one."""
    draft_tokens: int = 0
    reused_tokens: int = 0
    """Of earlier responses, after verification; not among the new tokens."""
    pass_rate_change: float = 0.0
    turn: AgentTurn | None = None
    """None: a prompt of the stream."""
    advantages: tuple[float, ...] | None = None
    """Of its responses, from a recipe that compares them beyond the group; None: group-relative."""


def decide_outcome(settings: RLSettings, group: RolloutGroup) -> GroupOutcome:
    """Decide whether a complete group is trained, and how."""
    scores = [item.verdict.score for item in group.rollouts if item.verdict.score is not None]
    if len(scores) < 2:
        return GroupOutcome.UNSCORED
    if scores_vary(scores):
        return GroupOutcome.NON_ZERO_VARIANCE
    if group.problem.verifier in JUDGED:
        return GroupOutcome.ZERO_VARIANCE_JUDGED
    if SCORE_TOLERANCE < scores[0] < 1.0 - SCORE_TOLERANCE:
        return GroupOutcome.ZERO_VARIANCE_PARTIAL
    if settings.zero_variance.rl_zvp_alpha == 0.0:
        return GroupOutcome.ZERO_VARIANCE_IDLE
    return GroupOutcome.ZERO_VARIANCE_TRAINED


def scores_vary(scores: Sequence[float]) -> bool:
    """True if the verdicts of a group differ, by the rule that its advantages follow."""
    if len(scores) < 2:
        return False
    scores_PG = torch.tensor([list(scores)], dtype=torch.float64)
    return bool(has_variance(scores_PG, torch.ones_like(scores_PG, dtype=torch.bool)))


def fill(found: Sequence[CollectedGroup], places: int) -> list[CollectedGroup]:
    """Fill the batch with groups that have reward variance, then with others in order of drawing.

    Groups for which there is no room become SURPLUS: generated, counted, not trained. Turns of
    other agents take no place: their quotas bound them before they are generated.
    """
    ranked = sorted(
        (index for index, item in enumerate(found) if item.turn is None),
        key=lambda index: found[index].outcome is not GroupOutcome.NON_ZERO_VARIANCE,
    )
    surplus = set(ranked[places:])
    return [
        replace(item, outcome=GroupOutcome.SURPLUS) if index in surplus else item
        for index, item in enumerate(found)
    ]


def solvers(groups: Sequence[CollectedGroup]) -> list[CollectedGroup]:
    """Return the groups of prompts of the stream: all of them in a plain phase."""
    return [entry for entry in groups if entry.turn is None]


def num_alive(groups: Sequence[CollectedGroup]) -> int:
    """Count the groups whose rewards differ."""
    return sum(entry.outcome is GroupOutcome.NON_ZERO_VARIANCE for entry in groups)


def check_abstentions(settings: RLSettings, groups: Sequence[RolloutGroup]) -> None:
    """Stop a step that would be trained on noise.

    Raises:
        EngineError: more rollouts than the error budget allows have no verdict.
    """
    verdicts = [item.verdict for group in groups for item in group.rollouts]
    verdicts = [verdict for verdict in verdicts if verdict.reason != PARENT_ABSTAINED]
    abstained = [verdict.reason for verdict in verdicts if verdict.abstained]
    if len(abstained) > settings.rewards.max_abstained_share * len(verdicts):
        reasons = ", ".join(
            f"{reason} x{abstained.count(reason)}" for reason in sorted(set(abstained))
        )
        raise EngineError(
            f"{len(abstained)} of {len(verdicts)} rollouts have no verdict ({reasons}); "
            "the step is not trained on noise. Fix the verifier, "
            "or raise rewards.max_abstained_share."
        )
