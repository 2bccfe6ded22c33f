"""Responses that take several steps: at most `segment_tokens` a step, the rest under newer weights.

Source: C3PO++ (Ring-1T): a rollout that is not finished when the update is due stays, and the new
policy goes on with it; tail batching for whoever does not want to wait for the longest response.
Differs: a response is cut by its own length and not by a budget over all of them, so that what a
step generates does not depend on which engine is faster; it survives at most
ceil(max_new_tokens / segment_tokens) - 1 updates, which bounds its staleness without a purge.

Routes and log-probabilities of a token are those recorded when it was drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from data_schemas.prompts import Problem
from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.engines.protocols import Request


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A prompt on its way: what its samples have said so far."""

    key: str
    """Unique in a phase: step, round and place of its draw."""
    problem: Problem
    round: int
    size: int
    rollouts: tuple[Rollout, ...] = ()
    """One per sample once the first segment is done; ordered by sample."""

    @property
    def complete(self) -> bool:
        """True if every sample has ended."""
        return len(self.rollouts) == self.size and all(map(ended, self.rollouts))


def ended(rollout: Rollout) -> bool:
    """True unless the response goes on in the next step."""
    return rollout.stop_reason is not StopReason.SEGMENT


def requests_of(group: OpenGroup, prompt_tokens: np.ndarray) -> list[Request]:
    """Ask for all samples of a fresh group, or for the rest of those that have not ended."""
    if not group.rollouts:
        return [Request(group.key, prompt_tokens, group.size)]
    return [
        Request(
            group.key,
            rollout.prompt_tokens,
            num_samples=1,
            first_sample=rollout.sample,
            response_tokens=rollout.response_tokens,
        )
        for rollout in group.rollouts
        if not ended(rollout)
    ]


def joined(before: Rollout, after: Rollout) -> Rollout:
    """One response from its earlier part and what was drawn now."""
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
    )


def updated(group: OpenGroup, new: Sequence[Rollout]) -> OpenGroup:
    """The group after a step: new samples taken up, continued ones joined."""
    so_far = {rollout.sample: rollout for rollout in group.rollouts}
    for rollout in new:
        before = so_far.get(rollout.sample)
        so_far[rollout.sample] = rollout if before is None else joined(before, rollout)
    return replace(group, rollouts=tuple(so_far[sample] for sample in sorted(so_far)))
