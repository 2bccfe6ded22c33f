"""Count what a judge is asked, and answer the same question once."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from data_schemas.prompts import Message
from tasks.rewards.judging.protocol import Judge, JudgeCalls

CACHED_REPLIES = 4096
"""A reply is at most some tens of kilobytes, so this is well under a gigabyte."""


class Calls:
    """A counter that several threads may add to."""

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
        """The counts so far."""
        return self._counts


class CachedJudge:
    """A Judge that asks another one, and repeats what it said to equal prompts.

    A greedy judge would say the same again. Silence is not remembered: a judge that was down may
    be up. Two threads that ask the same at the same moment both ask.
    """

    def __init__(self, judge: Judge, max_replies: int = CACHED_REPLIES) -> None:
        self._judge = judge
        self._max_replies = max_replies
        self._replies: OrderedDict[tuple[Message, ...], str] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = Calls()

    @property
    def name(self) -> str:
        """Name of the judge behind."""
        return self._judge.name

    @property
    def calls(self) -> JudgeCalls:
        """What the judge behind was asked, and how often memory answered."""
        return self._judge.calls.model_copy(update={"cached": self._hits.snapshot.cached})

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Ask what is not remembered, every distinct prompt once."""
        keys = [tuple(prompt) for prompt in prompts]
        replies: dict[tuple[Message, ...], str | None] = dict(self._remembered(keys))
        new = [key for key in dict.fromkeys(keys) if key not in replies]
        said = dict(zip(new, self._judge.ask(new), strict=True)) if new else {}
        self._remember(said)
        self._hits.add(cached=len(keys) - len(new))
        replies |= said
        return [replies[key] for key in keys]

    def _remembered(self, keys: Sequence[tuple[Message, ...]]) -> dict[tuple[Message, ...], str]:
        with self._lock:
            found = {key: self._replies[key] for key in keys if key in self._replies}
            for key in found:
                self._replies.move_to_end(key)
        return found

    def _remember(self, said: dict[tuple[Message, ...], str | None]) -> None:
        with self._lock:
            self._replies.update({key: reply for key, reply in said.items() if reply is not None})
            while len(self._replies) > self._max_replies:
                self._replies.popitem(last=False)
