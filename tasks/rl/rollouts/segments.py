"""Responses over several steps: at most `segment_tokens` per step, the rest with newer weights.

Source: C3PO++ (Ring-1T): a rollout that is unfinished when the update is due is kept, and the new
policy continues it, so that no step waits for the longest response.
Differs: a response is cut by its own length and not by a budget over all of them, so that what a
step generates does not depend on which engine is faster; it spans at most
ceil(max_new_tokens / segment_tokens) - 1 updates, which bounds its staleness without a purge.

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
    """One per sample once the first segment is done; ordered by sample."""
    stream: str = ""
    """Of its random numbers, with `engines.reuse`; such a group is never open between two steps."""
    turn: AgentTurn | None = None
    """None: a prompt of the stream."""

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
