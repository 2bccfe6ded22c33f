"""Count the prompts sent to a judge, per response too, and cache its replies."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from data_schemas.rows import Message
from tasks.gym.judging.protocol import Judge, JudgeCalls

CACHED_REPLIES = 4096
"""Replies have at most some tens of kilobytes, so the cache stays well under a gigabyte."""


class CallCounter:
    """A thread-safe counter of a judge's calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = JudgeCalls()

    def add(self, *, asked: int = 0, failed: int = 0, retried: int = 0, cached: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            before = self._counts
            self._counts = JudgeCalls(
                asked=before.asked + asked,
                failed=before.failed + failed,
                retried=before.retried + retried,
                cached=before.cached + cached,
            )

    @property
    def snapshot(self) -> JudgeCalls:
        """Return the counts so far."""
        return self._counts


class CachedJudge:
    """A Judge that caches the replies of another one by prompt.

    A greedy judge would repeat its reply. A missing reply is not cached, because a judge that was
    down may be up again. Two threads that ask the same prompt at the same time both send it.
    """

    def __init__(self, judge: Judge, max_replies: int = CACHED_REPLIES) -> None:
        self._judge = judge
        self._max_replies = max_replies
        self._replies: OrderedDict[tuple[Message, ...], str] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = CallCounter()

    @property
    def name(self) -> str:
        """Return the name of the wrapped judge."""
        return self._judge.name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls of the wrapped judge and the number of cache hits."""
        return self._judge.calls.model_copy(update={"cached": self._hits.snapshot.cached})

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Ask every distinct prompt that is not cached once."""
        keys = [tuple(prompt) for prompt in prompts]
        replies: dict[tuple[Message, ...], str | None] = dict(self._remembered(keys))
        new = [key for key in dict.fromkeys(keys) if key not in replies]
        fresh = dict(zip(new, self._judge.ask(new), strict=True)) if new else {}
        self._remember(fresh)
        self._hits.add(cached=len(keys) - len(new))
        replies |= fresh
        return [replies[key] for key in keys]

    def _remembered(self, keys: Sequence[tuple[Message, ...]]) -> dict[tuple[Message, ...], str]:
        with self._lock:
            results = {key: self._replies[key] for key in keys if key in self._replies}
            for key in results:
                self._replies.move_to_end(key)
        return results

    def _remember(self, replies: dict[tuple[Message, ...], str | None]) -> None:
        with self._lock:
            self._replies.update(
                {key: reply for key, reply in replies.items() if reply is not None}
            )
            while len(self._replies) > self._max_replies:
                self._replies.popitem(last=False)


class MeteredJudge:
    """A Judge that forwards to another one and counts prompts per thread.

    So each prompt is charged to the response that it was for. Prompts answered from the cache
    count too, so that the charge of a response does not depend on the responses scored before it.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._mine = threading.local()

    @property
    def name(self) -> str:
        """Return the name of the wrapped judge."""
        return self._judge.name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls of the wrapped judge, by all threads."""
        return self._judge.calls

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Ask the wrapped judge."""
        self._mine.asked = self.count_here() + len(prompts)
        return self._judge.ask(prompts)

    def count_here(self) -> int:
        """Return the number of prompts from the calling thread so far."""
        return self._mine.__dict__.get("asked", 0)
