"""Groups of responses: open over several steps, and finished with an outcome.

An open group is a prompt with unfinished responses: a part of them in each step, the rest with
newer weights. Source: C3PO++ (Ring-1T): a rollout that is unfinished when the update is due is
kept, and the new policy continues it, so that no step waits for the longest response.
Differs: no budget of tokens cuts them. With a number of `segment_tokens` a response is cut by its
own length; it spans at most ceil(max_new_tokens / segment_tokens) - 1 updates. With 'free' all are
cut when as many prompts are complete as a step trains, while IN_FLIGHT times as many were in
flight; prompts that began `staleness` steps before have to end first. So nothing is purged after a
number of survivals, which would drop long responses more often than short ones. Routes and
log-probabilities of a token are those recorded when it was sampled.

The outcome of a finished group is stages 2 and 3 of zero-variance elimination. It is decided on
correctness alone: shaping must not hide that a group has zero variance.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import CodeReward, JudgeKind, RLSettings
from data_schemas.rollouts import AgentTurn, Rollout, RolloutGroup, RouterTrace, StopReason
from data_schemas.rows import Problem
from data_schemas.verdicts import SCORE_TOLERANCE
from tasks.algorithms.advantages.grouped import has_variance
from tasks.algorithms.kept_sets import join_kept
from tasks.algorithms.phase_choices import trains_zero_variance
from tasks.engines.protocols import Request
from tasks.errors import EngineError
from tasks.gym.table import ENTRIES, is_judged


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """How a prompt came to be rolled out, and what its group weighs for it."""

    probability: float = 1.0
    """With which it was kept when it was offered."""
    weight: float = 1.0
    """Weight of its group in the loss, against the skips of its draw."""
    is_clipped: bool = False
    """The weight is less than the probability asks for."""


KEPT = KeptPrompt()
"""A prompt that nothing could have skipped."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A prompt with unfinished responses, and their tokens so far."""

    key: str
    """Unique in a phase: step, round and index of its draw."""
    problem: Problem
    round: int
    size: int
    rollouts: tuple[Rollout, ...] = ()
    """Those of the first samples that have begun; ordered by sample."""
    turn: AgentTurn | None = None
    """None: a prompt of the stream."""
    kept: KeptPrompt = KEPT

    @property
    def step(self) -> int:
        """Step in which the prompt was drawn."""
        return int(self.key.split(".")[0])

    @property
    def complete(self) -> bool:
        """True if every sample has ended."""
        return len(self.rollouts) == self.size and all(map(has_ended, self.rollouts))


def has_ended(rollout: Rollout) -> bool:
    """True unless the response continues in the next step."""
    return rollout.stop_reason is not StopReason.SEGMENT


def requests_of(group: OpenGroup, runs: Sequence[tuple[int, int, np.ndarray]]) -> list[Request]:
    """Build requests for a group's unfinished responses and for those that have not begun.

    Args:
        group: new or unfinished.
        runs: first sample, number of samples and prompt of each run of samples with one prompt.
    """
    num_begun = len(group.rollouts)
    unfinished = [
        Request(
            group.key,
            rollout.prompt_tokens,
            num_samples=1,
            first_sample=rollout.sample,
            response_tokens=rollout.response_tokens,
        )
        for rollout in group.rollouts
        if not has_ended(rollout)
    ]
    fresh = [
        Request(group.key, tokens, first + count - max(first, num_begun), max(first, num_begun))
        for first, count, tokens in runs
        if first + count > num_begun
    ]
    return [*unfinished, *fresh]


def mean_length(group: OpenGroup) -> float | None:
    """Mean length of the responses so far; None before the first, or while one is unfinished."""
    if not group.rollouts or not all(map(has_ended, group.rollouts)):
        return None
    return sum(rollout.num_sampled for rollout in group.rollouts) / len(group.rollouts)


def join_segments(before: Rollout, after: Rollout) -> Rollout:
    """Join the earlier segments of a response with the new one."""
    trace = after.trace
    if trace is not None and before.trace is not None:
        old_TLK, new_TLK = before.trace.experts_TLK, trace.experts_TLK
        # The continuation was prefilled with the earlier tokens under newer weights: that part of
        # its record is not of the policy which sampled them.
        trace = RouterTrace(np.concatenate([old_TLK, new_TLK[len(old_TLK) :]]))
    earlier = before.earlier
    if before.policy_version != after.policy_version:
        tokens = len(before.response_tokens) - sum(count for _, count in earlier)
        earlier = (*earlier, (before.policy_version, tokens))
    return replace(
        after,
        response_tokens=np.concatenate([before.response_tokens, after.response_tokens]),
        logprobs=np.concatenate([before.logprobs, after.logprobs]),
        trace=trace,
        earlier=earlier,
        kept=join_kept(before.kept, after.kept),
    )


def update_group(group: OpenGroup, new: Sequence[Rollout]) -> OpenGroup:
    """Add the new segments of a step to a group."""
    so_far = {rollout.sample: rollout for rollout in group.rollouts}
    for rollout in new:
        before = so_far.get(rollout.sample)
        so_far[rollout.sample] = rollout if before is None else join_segments(before, rollout)
    return replace(group, rollouts=tuple(so_far[sample] for sample in sorted(so_far)))


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
    pass_rate_change: float = 0.0
    turn: AgentTurn | None = None
    """None: a prompt of the stream."""
    advantages: tuple[float, ...] | None = None
    """Advantages of its responses, from a recipe that compares them beyond the group; None:
    group-relative."""
    kept: KeptPrompt = KEPT


def without_problems(
    settings: RLSettings, problems: Iterable[Problem], expected: Collection[str] = ()
) -> list[str]:
    """Name what the settings say of verifiers that no problem has.

    That is how programs are rewarded and by which judge, unless a recipe may make problems of its
    own or ask the judge itself; and what a recipe says of verifiers.

    Args:
        settings: of the phase.
        problems: of the phase.
        expected: verifiers that the settings of its recipe speak of.
    """
    present = {one.verifier.partition("@")[0] for one in problems}
    if settings.recipe is not None:
        return [
            f"recipe: what it says of verifier {name} has no effect: no problem of the phase has "
            f"it, but {', '.join(sorted(present))}"
            for name in sorted({*expected} - present)
        ]
    rewards, lines = settings.rewards, []
    if rewards.code is not CodeReward.PASS_RATE and "code_tests" not in present:
        lines.append(
            f"rewards.code {rewards.code.value} has no effect: no problem of the phase has "
            "verifier code_tests"
        )
    judges = sorted(name for name, entry in ENTRIES.items() if entry.needs_judge)
    if rewards.judge.kind is not JudgeKind.NONE and present.isdisjoint(judges):
        lines.append(
            f"rewards.judge {rewards.judge.kind.value} has no effect: no problem of the phase "
            f"has verifier {' or '.join(judges)}"
        )
    return lines


def decide_outcome(settings: RLSettings, group: RolloutGroup) -> GroupOutcome:
    """Decide whether a complete group is trained, and how."""
    scores = [item.verdict.score for item in group.rollouts if item.verdict.score is not None]
    if len(scores) < 2:
        return GroupOutcome.UNSCORED
    if scores_vary(scores):
        return GroupOutcome.NON_ZERO_VARIANCE
    if is_judged(group.problem):
        return GroupOutcome.ZERO_VARIANCE_JUDGED
    if SCORE_TOLERANCE < scores[0] < 1.0 - SCORE_TOLERANCE:
        return GroupOutcome.ZERO_VARIANCE_PARTIAL
    if trains_zero_variance(settings):
        return GroupOutcome.ZERO_VARIANCE_TRAINED
    return GroupOutcome.ZERO_VARIANCE_IDLE


def scores_vary(scores: Sequence[float]) -> bool:
    """True if the verdicts of a group differ, by the rule that its advantages follow."""
    if len(scores) < 2:
        return False
    scores_PG = torch.tensor([list(scores)], dtype=torch.float64)
    return bool(has_variance(scores_PG, torch.ones_like(scores_PG, dtype=torch.bool)))


def fill(groups: Sequence[CollectedGroup], places: int) -> list[CollectedGroup]:
    """Fill the batch with groups that have reward variance, then with others in order of drawing.

    Groups for which there is no room become SURPLUS: generated, counted, not trained. Turns of
    other agents take no place: their quotas bound them before they are generated.
    """
    ranked = sorted(
        (index for index, item in enumerate(groups) if item.turn is None),
        key=lambda index: groups[index].outcome is not GroupOutcome.NON_ZERO_VARIANCE,
    )
    surplus = set(ranked[places:])
    return [
        replace(item, outcome=GroupOutcome.SURPLUS) if index in surplus else item
        for index, item in enumerate(groups)
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
