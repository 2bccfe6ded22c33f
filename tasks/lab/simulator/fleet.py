"""Discrete events of rollout engines: sequences enter, decode together, and end.

An engine's sequences advance one token per decoding pass, so it changes only when a sequence ends
or when its cache is full. As in vLLM, a sequence enters as long as a slot and cache are free, and
the one that entered last is preempted when the cache is full: it waits again, and what it had is
prefilled again.

Units: seconds and tokens.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import attrgetter

from tasks.errors import SettingsError
from tasks.lab.simulator.rates import EngineRates


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """A response that an engine generates, or the rest of one."""

    group: int
    sample: int
    prompt: int
    tokens: int
    """Left to generate; at least 1."""
    earlier: int = 0
    """Generated before, and prefilled again."""
    expected: float = 0.0
    """Tokens that are expected to be left."""

    @property
    def fed(self) -> int:
        """Tokens that are prefilled."""
        return self.prompt + self.earlier


@dataclass(frozen=True, slots=True)
class CompletedJob:
    """A response, and when it ended."""

    second: float
    job: GenerationJob


@dataclass(slots=True)
class _Live:
    job: GenerationJob
    context: int
    """Tokens in the cache before its first pass here."""
    first_pass: int
    preempted: bool = False
    ended: bool = False


@dataclass(slots=True)
class Engine:
    """A simulated rollout engine: its queue, its cache and its clock."""

    rates: EngineRates
    waiting: deque[GenerationJob] = field(default_factory=deque)
    """Its own queue: what it was dealt."""
    clock: float = 0.0
    busy: float = 0.0
    preempted: int = 0
    _passes: int = 0
    _context: int = 0
    cache_demand: float = 0.0
    """Mean number of tokens in the cache that is expected of the live sequences."""
    live: int = 0
    """Sequences that are being decoded."""
    _ends: list[tuple[int, int, _Live]] = field(default_factory=list)
    """Heap of last passes, with a number that decides between equals."""
    _entered: list[_Live] = field(default_factory=list)
    """In this order; some have ended."""
    _numbers: Iterator[int] = field(default_factory=count)

    def admit(self, shared: deque[GenerationJob]) -> bool:
        """Let one response enter, of its own queue or else of a shared one; False if none can.

        Of the shared queue only what is expected to stay: on average, half of what is left to
        generate is in the cache.
        """
        queue = self.waiting or shared
        if not queue or not self._can_enter(queue[0], lasting=queue is not self.waiting):
            return False
        job = queue.popleft()
        self._spend(self.rates.prefill_s * job.fed)
        entered = _Live(job, job.fed, self._passes)
        self.cache_demand += job.fed + job.expected / 2
        heapq.heappush(self._ends, (self._passes + job.tokens, next(self._numbers), entered))
        self._entered.append(entered)
        self._context += job.fed
        self.live += 1
        return True

    def next_event(self) -> float:
        """Return when a sequence ends or the cache is full; infinity if nothing is live."""
        return self.clock + self._seconds(self._event_passes()) if self.live else math.inf

    def advance(self, most: int | None = None) -> list[CompletedJob]:
        """Decode until the next event, at most so many passes; return the responses that ended."""
        passes = self._event_passes()
        cut = most is not None and most < passes
        if most is not None and cut:
            passes = most
        self._spend(self._seconds(passes))
        self._passes += passes
        self._context += passes * self.live
        ended = []
        while self._ends and (self._ends[0][2].preempted or self._ends[0][0] == self._passes):
            one = heapq.heappop(self._ends)[2]
            if not one.preempted:
                one.ended = True
                self._leave(one)
                ended.append(CompletedJob(self.clock, one.job))
        if not (ended or cut):
            self._preempt()
        return ended

    def advance_to(self, goal: int) -> list[CompletedJob]:
        """Decode until this pass, or until nothing is live; return the responses that ended."""
        ended = []
        while self.live and self._passes < goal:
            ended += self.advance(goal - self._passes)
            while self.admit(self.waiting):
                pass
        self._passes = max(self._passes, goal)
        return ended

    def can_take(self, shared: deque[GenerationJob]) -> bool:
        """Return whether one response of a shared queue could enter."""
        return bool(shared) and not self.waiting and self._can_enter(shared[0], lasting=True)

    def cut(self, now: float) -> list[GenerationJob]:
        """Decode until this second and stop; return what is left of every response."""
        passes, most = 0, self._event_passes() if self.live else 0
        while passes < most:  # the largest number of passes that ends in time
            middle = (passes + most + 1) // 2
            if self.clock + self._seconds(middle) <= now:
                passes = middle
            else:
                most = middle - 1
        if passes:
            self._spend(self._seconds(passes))
            self._passes += passes
        rest = [
            _rest(one.job, self._passes - one.first_pass)
            for one in self._entered
            if not (one.ended or one.preempted)
        ]
        return [job for job in rest if job.tokens > 0] + list(self.waiting)

    def _can_enter(self, job: GenerationJob, *, lasting: bool) -> bool:
        if self.live >= self.rates.slots or not self._has_room(job):
            return False
        return not (lasting and self.live) or self._has_lasting_room(job)

    def _has_room(self, job: GenerationJob) -> bool:
        longest = job.fed + job.tokens
        if longest > self.rates.cache_tokens:
            raise SettingsError(
                f"a sequence of {longest:,} tokens does not fit in the cache of an engine, "
                f"{self.rates.cache_tokens:,} tokens"
            )
        return self._context + job.fed + self.live < self.rates.cache_tokens

    def _has_lasting_room(self, job: GenerationJob) -> bool:
        return self.cache_demand + job.fed + job.expected / 2 <= self.rates.cache_tokens

    def _event_passes(self) -> int:
        while self._ends[0][2].preempted:
            heapq.heappop(self._ends)
        to_end = self._ends[0][0] - self._passes
        to_full = (self.rates.cache_tokens - self._context) // self.live
        return max(1, min(to_end, to_full)) if self.live > 1 else to_end

    def _seconds(self, passes: int) -> float:
        positions = passes * self._context + self.live * passes * (passes + 1) // 2
        return passes * self.rates.pass_seconds(self.live) + self.rates.context_s * positions

    def _preempt(self) -> None:
        while self._entered[-1].ended:
            self._entered.pop()
        last = self._entered.pop()
        last.preempted = True
        self.preempted += 1
        self._leave(last)
        self.waiting.appendleft(_rest(last.job, self._passes - last.first_pass))

    def _leave(self, one: _Live) -> None:
        self._context -= one.context + self._passes - one.first_pass
        self.cache_demand -= one.job.fed + one.job.expected / 2
        self.live -= 1

    def _spend(self, seconds: float) -> None:
        self.clock += seconds
        self.busy += seconds


def _rest(job: GenerationJob, generated: int) -> GenerationJob:
    return replace(job, tokens=job.tokens - generated, earlier=job.earlier + generated)


class Fleet:
    """Engines with a queue each, and one queue from which an engine takes when its own is empty."""

    def __init__(self, rates: EngineRates, queues: Sequence[Iterable[GenerationJob]]) -> None:
        self.engines = [Engine(rates, deque(queue)) for queue in queues]
        self.shared: deque[GenerationJob] = deque()
        self._events: list[tuple[float, int]] = []
        self.wake(0.0)

    def wake(self, now: float) -> None:
        """Let idle engines take from the queues, in turn, at this second."""
        idle = [place for place, engine in enumerate(self.engines) if not engine.live]
        for place in idle:
            self.engines[place].clock = max(self.engines[place].clock, now)
        taking = idle
        while taking:
            taking = [place for place in taking if self.engines[place].admit(self.shared)]
        for place in idle:
            self._expect(place)

    @property
    def busy(self) -> float:
        """Seconds in which engines computed, summed over them."""
        return sum(engine.busy for engine in self.engines)

    def pause(self, seconds: float) -> None:
        """Let all engines stand still, and go on with what they have."""
        self._events.clear()
        for place, engine in enumerate(self.engines):
            engine.clock += seconds
            self._expect(place)

    def next_event(self) -> float:
        """Return when something happens next; infinity if nothing is live."""
        return self._events[0][0] if self._events else math.inf

    def advance(self) -> list[CompletedJob]:
        """Let the next event happen; return the responses that ended."""
        _, place = heapq.heappop(self._events)
        engine = self.engines[place]
        ended = engine.advance()
        while engine.admit(self.shared):
            pass
        self._expect(place)
        return ended

    def drain(self) -> list[CompletedJob]:
        """Run until nothing is left; return all responses in the order in which they end."""
        ended: list[CompletedJob] = []
        while self._events:
            ended.extend(self.advance())
        return ended

    def drain_in_rounds(self, passes: int) -> list[CompletedJob]:
        """Run until nothing is left; engines take from the shared queue after so many passes each.

        Who takes depends on passes only, so an engine that has room waits until all have computed
        the passes of its round.
        """
        ended, goal = list[CompletedJob](), 0
        while self.shared:
            taking = [engine for engine in self.engines if engine.can_take(self.shared)]
            if taking:
                now = max(engine.clock for engine in self.engines)
                for engine in taking:
                    engine.clock = now
            self._share(taking)
            goal += passes
            for engine in self.engines:
                ended += engine.advance_to(goal)
        for place in range(len(self.engines)):
            self._expect(place)
        return ended + self.drain()

    def _share(self, engines: Sequence[Engine]) -> None:
        """Deal the shared queue to the engine that holds least.

        A group's responses stay together, unless the caches cannot hold all that is waiting.
        """
        free = sum(max(0.0, engine.rates.cache_tokens - engine.cache_demand) for engine in engines)
        whole = sum(job.fed + job.expected / 2 for job in self.shared) <= free
        while able := [engine for engine in engines if engine.can_take(self.shared)]:
            engine, group = min(able, key=attrgetter("cache_demand")), self.shared[0].group
            while self.shared and self.shared[0].group == group and engine.admit(self.shared):
                if not whole:
                    break

    def cut(self, now: float) -> list[GenerationJob]:
        """Stop all engines at this second; return what is left of every response."""
        return [job for engine in self.engines for job in engine.cut(now)] + list(self.shared)

    def _expect(self, place: int) -> None:
        if self.engines[place].live:
            heapq.heappush(self._events, (self.engines[place].next_event(), place))
