"""A pool of sandbox processes and what verifiers ask of it.

A program that hangs, dies or lies gets an outcome that says so; only a failure of the sandbox
itself raises, after a second try.
"""

import atexit
import functools
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tasks.errors import EngineError
from tasks.rewards.sandbox import wire
from tasks.rewards.sandbox.budget import Budget
from tasks.rewards.sandbox.levels import VARIABLE, Level, available, choose
from tasks.rewards.sandbox.limits import Limits
from tasks.rewards.sandbox.session import Outcome, Run, Runs, Session
from tasks.rewards.sandbox.toolchains import Build

_LOG = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")
_OPENING = threading.Lock()


class Sandbox:
    """At most `size` programs at once, each in a process of its own; safe to use from threads."""

    def __init__(
        self, limits: Limits | None = None, level: Level | None = None, size: int | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.level = level or choose(os.environ.get(VARIABLE, ""), available())
        self._size = size or max(1, os.cpu_count() or 1)
        self._forget()
        atexit.register(self.close)

    def run(
        self,
        source: str,
        tests: Sequence[str],
        setup: str = "",
        *,
        budget: Budget | None = None,
        early: bool = False,
    ) -> Outcome:
        """Load a Python program and run tests against it; nothing of it is left afterwards.

        Args:
            budget: what this program may use; None for the sandbox's own limits.
            early: stop at the first failed test.

        Raises:
            EngineError: the sandbox failed twice.
        """
        task = {"source": source, "setup": setup, "tests": list(tests), "early": early}
        return self._judged(task, budget)

    def call(
        self,
        source: str,
        name: str,
        cases: Sequence[object],
        *,
        budget: Budget | None = None,
        early: bool = False,
    ) -> Outcome:
        """Load a Python program and compare what its function returns, case by case.

        Args:
            cases: objects with `args` and `expected`.
            budget: what this program may use; None for the sandbox's own limits.
            early: stop at the first failed case.

        Raises:
            EngineError: the sandbox failed twice.
        """
        task = {"source": source, "function": name, "cases": list(cases), "early": early}
        return self._judged(task, budget)

    def execute(
        self,
        build: Build,
        inputs: Sequence[str],
        judge: Callable[[int, Run], str],
        *,
        budget: Budget | None = None,
        early: bool = False,
    ) -> Runs:
        """Compile a program once and run it on every input.

        Args:
            judge: why a run failed, given its index; empty if it passed.
            budget: what this program may use; None for the sandbox's own limits.
            early: stop at the first failure.

        Raises:
            EngineError: the sandbox failed twice.
        """
        chosen = budget or Budget(self.limits)
        return self._twice(
            lambda session: session.execute(build, inputs, judge, chosen, early=early)
        )

    def close(self) -> None:
        """End all processes; a later run starts new ones."""
        if self._owner != os.getpid():
            return
        while self._all:
            self._all.pop().close()
        self._idle = queue.LifoQueue()

    def _judged(self, task: object, budget: Budget | None) -> Outcome:
        chosen = budget or Budget(self.limits)
        return self._twice(lambda session: session.judge(task, chosen))

    def _twice(self, use: Callable[[Session], ResultT]) -> ResultT:
        for attempt in (1, 2):
            try:
                with self._session() as session:
                    return use(session)
            except (wire.WireError, OSError) as error:
                _LOG.warning("sandbox process failed (attempt %s): %s", attempt, error)
                failure = error
        raise EngineError(f"the sandbox failed twice: {failure}") from failure

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Lend a process; one that raised is not lent again."""
        if self._owner != os.getpid():  # a forked child must not talk on its parent's sockets
            self._forget()
        with self._places:
            session = self._take()
            try:
                yield session
            except BaseException:
                session.close()
                self._all.remove(session)
                raise
            self._idle.put(session)

    def _take(self) -> Session:
        while True:
            try:
                session = self._idle.get_nowait()
            except queue.Empty:
                session = Session(self.limits, self.level)
                self._all.append(session)
                return session
            if session.alive:
                return session
            session.close()
            self._all.remove(session)

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._idle: queue.LifoQueue[Session] = queue.LifoQueue()
        self._all: list[Session] = []
        self._places = threading.BoundedSemaphore(self._size)


def shared_sandbox() -> Sandbox:
    """Return the sandbox all verifiers of this process use.

    Raises:
        SettingsError: nothing good enough works here; the message says what to install or set.
    """
    with _OPENING:  # two threads that ask first would open two
        return _opened()


@functools.cache
def _opened() -> Sandbox:
    return Sandbox()
