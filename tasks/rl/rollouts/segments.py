"""Responses over several steps: a part of them in each, the rest with newer weights.

Source: C3PO++ (Ring-1T): a rollout that is unfinished when the update is due is kept, and the new
policy continues it, so that no step waits for the longest response.
Differs: no budget of tokens cuts them. With a number of `segment_tokens` a response is cut by its
own length; it spans at most ceil(max_new_tokens / segment_tokens) - 1 updates. With 'free' all are
cut when as many prompts are complete as a step trains, while IN_FLIGHT times as many were in
flight; prompts that began `staleness` steps before have to end first. So nothing is purged after a
number of survivals, which would drop long responses more often than short ones.

Routes and log-probabilities of a token are those recorded when it was sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from data_schemas.agent_turns import AgentTurn
from data_schemas.prompts import Problem
from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.engines.protocols import Request


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
    stream: str = ""
    """Of its random numbers, with `engines.reuse`; such a group is never open between two steps."""
    turn: AgentTurn | None = None
    """None: a prompt of the stream."""

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
    begun = len(group.rollouts)
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
        Request(group.key, tokens, first + count - max(first, begun), max(first, begun))
        for first, count, tokens in runs
        if first + count > begun
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
        trace = RouterTrace(np.concatenate([old_TLK, new_TLK[len(old_TLK) :]]))
    first = before.policy_version if before.first_version < 0 else before.first_version
    return replace(
        after,
        response_tokens=np.concatenate([before.response_tokens, after.response_tokens]),
        logprobs=np.concatenate([before.logprobs, after.logprobs]),
        trace=trace,
        first_version=first,
        reused=before.reused + after.reused,
    )


def update_group(group: OpenGroup, new: Sequence[Rollout]) -> OpenGroup:
    """Add the new segments of a step to a group."""
    so_far = {rollout.sample: rollout for rollout in group.rollouts}
    for rollout in new:
        before = so_far.get(rollout.sample)
        so_far[rollout.sample] = rollout if before is None else join_segments(before, rollout)
    return replace(group, rollouts=tuple(so_far[sample] for sample in sorted(so_far)))
