"""Requests that several engines share: each takes the next ones when it has room for them.

An engine asks after every round of decoding passes, and requests are dealt when all engines have
asked for that round. So which engine gets a request depends on the numbers of tokens, never on
time: a phase that is resumed has the batches of one that was not killed, and their bytes. An engine
without room asks for nothing and decodes on; one with room waits for the others. If the call ends
with `Sampling.enough` prompts, all wait: the end is that of a round.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from data_schemas.rollouts import Rollout
from tasks.algorithms.scheduling import passes_per_round
from tasks.engines.protocols import Request, RolloutEngine, Sampling


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine has room for."""

    live: int
    """Sequences that it has."""
    slots: int
    """Further sequences that it could decode."""
    cache_use: float
    """Tokens that its sequences are expected to hold in the cache, on average over their time."""
    cache: float
    """Tokens that its cache holds; infinity if it grows."""
    ended: tuple[str, ...] = ()
    """Problems of the responses that ended since the last round, with `Sampling.enough`."""


class RequestQueue(Protocol):
    """One engine's end of the queue."""

    @property
    def samples(self) -> int:
        """Responses of all requests that were in the queue."""
        ...

    @property
    def empty(self) -> bool:
        """True once this engine knows that nothing is left."""
        ...

    @property
    def over(self) -> bool:
        """True once this engine knows that the call has `Sampling.enough` prompts."""
        ...

    def take(self, room: Room) -> Sequence[Request]:
        """Take part in a round; waits for the other engines if there is room.

        A request may come in parts, with some of its samples each.
        """
        ...


Requests = Sequence[Request] | RequestQueue


class QueueingEngine(RolloutEngine, Protocol):
    """A RolloutEngine that can share a queue with others."""

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        """Start requests in the order in which they come; yield each rollout as it ends."""
        ...


class Ending:
    """Whether a call may end: enough prompts are complete, and all that are due."""

    def __init__(self, requests: Sequence[Request], enough: int) -> None:
        self._left: Counter[str] = Counter()
        for request in requests:
            self._left[request.problem_id] += request.num_samples
        self._due = {request.problem_id for request in requests if request.due}
        self._enough, self._complete = enough, 0

    def reached(self, ended: Iterable[str]) -> bool:
        """Count responses that ended, by problem."""
        for problem_id in ended:
            self._left[problem_id] -= 1
            if self._left[problem_id] == 0:
                self._complete += 1
                self._due.discard(problem_id)
        return 0 < self._enough <= self._complete and not self._due


def held_tokens(request: Request) -> float:
    """Return the mean number of tokens that a sample is expected to hold in the cache."""
    # Half of what is expected: over its time a response grows from none to all of it.
    return len(request.prompt_tokens) + len(request.response_tokens) + request.expected_tokens / 2


class CallRequests:
    """The requests of one call of an engine, as it may start them.

    Args:
        requests: all of them, or a queue.
        sampling: of the call.
        slots: sequences that the engine decodes at once.
        cache: tokens that its cache holds.
    """

    def __init__(
        self, requests: Requests, sampling: Sampling, *, slots: int, cache: float = math.inf
    ) -> None:
        self._requests = requests
        self._every = passes_per_round(sampling.max_new_tokens, sampling.segment_tokens)
        self._slots, self._cache = slots, cache
        self._held: dict[tuple[str, int], float] = {}
        self._ending = Ending(requests if isinstance(requests, Sequence) else (), sampling.enough)
        self._enough, self._ended = sampling.enough, list[str]()
        self._passes = 0
        self._taken = self._over = False

    @property
    def samples(self) -> int:
        """Largest number of responses that may come."""
        if isinstance(self._requests, Sequence):
            return sum(request.num_samples for request in self._requests)
        return self._requests.samples

    @property
    def open(self) -> bool:
        """True while more may come."""
        if isinstance(self._requests, Sequence):
            return not self._taken
        return not self._requests.empty

    @property
    def over(self) -> bool:
        """True once enough prompts are complete: live responses are cut, waiting ones dropped."""
        return self._over if isinstance(self._requests, Sequence) else self._requests.over

    def take(self, *, full: bool = False) -> Sequence[Request]:
        """Return what may be started now; call it once before every decoding pass.

        Args:
            full: the engine starts nothing now, although it has slots.
        """
        if isinstance(self._requests, Sequence):
            new, self._taken = () if self._taken else self._requests, True
            return new
        self._passes += 1
        if self._requests.empty or (self._held and self._passes <= self._every):
            return ()
        self._passes = 1
        live = len(self._held)
        tokens = sum(self._held.values())
        room = Room(live, 0 if full else self._slots - live, tokens, self._cache, (*self._ended,))
        self._ended.clear()
        new = self._requests.take(room)
        for request in new:
            for sample in range(request.first_sample, request.first_sample + request.num_samples):
                self._held[request.problem_id, sample] = held_tokens(request)
        return new

    def end(self, problem_id: str, sample: int) -> None:
        """Note that a response has ended."""
        self._held.pop((problem_id, sample), None)
        if isinstance(self._requests, Sequence):
            self._over = self._ending.reached([problem_id])
        elif self._enough:
            self._ended.append(problem_id)


def deal(waiting: list[Request], rooms: Sequence[Room]) -> list[list[Request]]:
    """Deal requests to engines in the given order, each to the one that holds least and has room.

    The samples of a request stay together, unless the caches cannot hold all that is waiting: then
    they are dealt one by one. An engine without sequences gets at least one. What is not dealt
    stays in `waiting`.
    """
    free = sum(max(0.0, room.cache - room.cache_use) for room in rooms)
    whole = sum(held_tokens(request) * request.num_samples for request in waiting) <= free
    dealt: list[list[Request]] = [[] for _ in rooms]
    slots = [room.slots for room in rooms]
    live = [room.live for room in rooms]
    tokens = [room.cache_use for room in rooms]
    while waiting:
        request, own = waiting[0], held_tokens(waiting[0])
        able = [
            place
            for place, room in enumerate(rooms)
            if slots[place] > 0 and (not live[place] or tokens[place] + own <= room.cache)
        ]
        if not able:
            break
        place = min(able, key=lambda one: (tokens[one], one))
        fitting = min(slots[place], (rooms[place].cache - tokens[place]) // own)
        count = int(max(1, min(request.num_samples, fitting))) if whole else 1
        dealt[place].append(_samples(request, 0, count))
        if count < request.num_samples:
            waiting[0] = _samples(request, count, request.num_samples)
        else:
            waiting.pop(0)
        slots[place] -= count
        live[place] += count
        tokens[place] += count * own
    return dealt


def _samples(request: Request, first: int, last: int) -> Request:
    return replace(
        request,
        num_samples=last - first,
        first_sample=request.first_sample + first,
    )
