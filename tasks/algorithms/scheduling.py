"""Assign responses to workers so that the last one finishes early.

Longest processing time first (LPT, Graham 1969) on predicted lengths: jobs in descending order,
each to the worker that is free first. CompassMax balances engines this way (length-based load
balancing); the same rule orders the slots of one engine.

A job is a response, and its duration is its length in tokens: every slot advances one token per
decoding step, independently of the other slots. Differs: real decoding slows down as the batch
grows, so the bounds hold for this slot model.

Bounds of every list order (not only LPT), with m workers:

    max(total / m, longest)  <=  makespan  <=  total / m + (1 - 1 / m) * longest

Letters: J jobs, M workers.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.errors import SettingsError

IN_FLIGHT = 2
"""Prompts in flight of a free-running step, as a multiple of those that it trains: with fewer,
slots are idle in the end; more only make responses older (tasks/lab/simulator)."""
ROUNDS = 64
"""Times that an engine asks a shared queue while it generates the longest response of a call."""


@dataclass(frozen=True, slots=True)
class Makespan:
    """Time at which the last job ends, and its bounds."""

    tokens: float
    lower_bound: float
    graham_bound: float


def longest_first(predicted_J: Sequence[float]) -> list[int]:
    """Order jobs by descending predicted length, ties by index."""
    return sorted(range(len(predicted_J)), key=lambda job: (-predicted_J[job], job))


def assign(predicted_J: Sequence[float], order: Sequence[int], num_workers: int) -> list[list[int]]:
    """Assign every job, in order, to the worker that is free first; ties go to the first worker.

    Returns:
        Jobs of every worker, in execution order. With `order = longest_first(...)` this is LPT,
        at most 4/3 - 1/(3m) times the best makespan.
    """
    _check(num_workers)
    free = [(0.0, worker) for worker in range(num_workers)]
    jobs: list[list[int]] = [[] for _ in range(num_workers)]
    for job in order:
        load, worker = heapq.heappop(free)
        jobs[worker].append(job)
        heapq.heappush(free, (load + predicted_J[job], worker))
    return jobs


def makespan(lengths_J: Sequence[float], order: Sequence[int], num_workers: int) -> Makespan:
    """Simulate jobs of known length in an order; all 0 without jobs."""
    _check(num_workers)
    free = [0.0] * num_workers
    for job in order:
        heapq.heapreplace(free, free[0] + lengths_J[job])
    total, longest = sum(lengths_J), max(lengths_J, default=0.0)
    return Makespan(
        tokens=max(free),
        lower_bound=max(total / num_workers, longest),
        graham_bound=total / num_workers + (1.0 - 1.0 / num_workers) * longest,
    )


def passes_per_round(max_new_tokens: int, segment_tokens: int) -> int:
    """Return the decoding passes between two times that an engine asks a shared queue."""
    return max(1, min(max_new_tokens, segment_tokens or max_new_tokens) // ROUNDS)


def _check(num_workers: int) -> None:
    if num_workers < 1:
        raise SettingsError(f"num_workers is {num_workers}; scheduling needs at least 1")
