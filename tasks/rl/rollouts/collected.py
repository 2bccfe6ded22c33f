"""Result of a step's rollouts: finished groups, skipped prompts, unfinished groups, costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from data_schemas.agent_turns import AgentTurn, account_of
from data_schemas.ledger import GroupOutcome
from data_schemas.prompts import Problem
from data_schemas.rollouts import Rollout
from data_schemas.scoring import Scored
from tasks.rl.recipe import Memory
from tasks.rl.rollouts.curriculum import CurriculumPosition
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.rollouts.history import History, PromptRecord
from tasks.rl.rollouts.reuse import Responses
from tasks.rl.rollouts.segments import OpenGroup


@dataclass(frozen=True, slots=True)
class CollectorState:
    """State of a collector between two steps."""

    position: int
    records: Mapping[str, PromptRecord]
    stage: CurriculumPosition
    open_groups: tuple[OpenGroup, ...]
    responses: Mapping[str, Responses] = field(default_factory=dict)
    """By stream; empty without `engines.reuse`."""
    turns: tuple[AgentTurn, ...] = ()
    """Waiting turns of other agents than the solver, oldest first."""
    memory: Memory = field(default_factory=dict)
    """Of a recipe, from step to step."""


def first_state(problems: Sequence[Problem], responses: Mapping[str, Responses]) -> CollectorState:
    """Begin a phase with the grading of its problems, and responses that it may reuse."""
    records = History.graded(problems).records()
    return CollectorState(0, records, CurriculumPosition(), (), responses)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A prompt that was drawn but not rolled out."""

    problem: Problem
    round: int
    outcome: GroupOutcome
    saved_tokens: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """A prompt with responses that continue in the next step."""

    group: OpenGroup
    new_tokens: int
    draft_tokens: int

    def after(self, before: "InFlight | None") -> "InFlight":
        """Add what it took earlier in the same step."""
        if before is None:
            return self
        new, drafted = before.new_tokens, before.draft_tokens
        return InFlight(self.group, self.new_tokens + new, self.draft_tokens + drafted)


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock time and judge calls of a group in one step."""

    round: int
    problem_id: str
    engine_seconds: float
    verifier_seconds: float
    judge_calls: int


@dataclass(frozen=True, slots=True)
class Rolled:
    """Responses of a draw with their verdicts, by group or by group and sample."""

    groups: dict[str, OpenGroup]
    """With the new responses."""
    new: dict[str, list[Rollout]]
    drafted: dict[str, int]
    """Draft tokens."""
    scored: dict[tuple[str, int], Scored]
    metrics: dict[str, float]
    rollout_seconds: float
    reward_seconds: float


@dataclass(frozen=True, slots=True)
class Collected:
    """One step's rollouts. `groups` holds every finished group; outcomes say which train."""

    step: int
    policy_version: int
    """Newest policy version that sampled one of its tokens."""
    groups: list[CollectedGroup]
    skipped: list[Skipped] = field(default_factory=list)
    in_flight: list[InFlight] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    """Deterministic metrics of the schedule."""
    rollout_seconds: float = 0.0
    reward_seconds: float = 0.0
    """Seconds spent waiting for verdicts after the last response had ended."""

    @property
    def trained(self) -> list[CollectedGroup]:
        """The groups of the training batch."""
        return [item for item in self.groups if item.outcome is not GroupOutcome.SURPLUS]


def merge_draw(whole: Collected, found: Collected, skipped: list[Skipped]) -> Collected:
    """Add a draw to the step so far."""
    return replace(
        whole,
        groups=[*whole.groups, *found.groups],
        skipped=[*whole.skipped, *skipped],
        in_flight=[*whole.in_flight, *found.in_flight],
        costs=[*whole.costs, *found.costs],
        metrics=found.metrics | whole.metrics,
        rollout_seconds=whole.rollout_seconds + found.rollout_seconds,
        reward_seconds=whole.reward_seconds + found.reward_seconds,
    )


def costs_of(
    groups: Sequence[OpenGroup],
    new: Mapping[str, Sequence[Rollout]],
    drafted: Mapping[str, int],
    scored: Mapping[tuple[str, int], Scored],
    seconds: float,
) -> list[Cost]:
    """Divide the rollout time by tokens; verifier time is measured per group."""
    tokens = {
        key: drafted[key] + sum(rollout.num_sampled for rollout in rollouts)
        for key, rollouts in new.items()
    }
    rate = seconds / max(1, sum(tokens.values()))
    mine: dict[str, list[Scored]] = {group.key: [] for group in groups}
    for (key, _), item in scored.items():
        mine[key].append(item)
    return [
        Cost(
            round=group.round,
            problem_id=account_of(group.turn.root, group.turn.agent)
            if group.turn
            else group.problem.id,
            engine_seconds=rate * tokens[group.key],
            verifier_seconds=sum(item.seconds for item in mine[group.key]),
            judge_calls=sum(item.judge_calls for item in mine[group.key]),
        )
        for group in groups
    ]
