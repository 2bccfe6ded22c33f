"""A pool of sandbox processes, and its interface for verifiers.

A program that hangs or crashes has an outcome that says so; only a failure of the sandbox itself
raises, after a second attempt.
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

from tasks.cores import num_cores
from tasks.errors import EngineError
from tasks.gym.sandbox import wire
from tasks.gym.sandbox.asserts import are_literal
from tasks.gym.sandbox.budget import Budget
from tasks.gym.sandbox.levels import VARIABLE, Level, available, choose
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.session import ProgramOutcome, ProgramRun, Runs, Session
from tasks.gym.sandbox.toolchains import Build

_LOG = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")
_OPENING = threading.Lock()


class Sandbox:
    """Runs at most `size` programs at once, each in its own processes; thread-safe."""

    def __init__(
        self, limits: Limits | None = None, level: Level | None = None, size: int | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.level = level or choose(os.environ.get(VARIABLE, ""), available())
        self._size = size or num_cores()
        self._reset()
        atexit.register(self.close)

    def run(
        self,
        source: str,
        tests: Sequence[str],
        setup: str = "",
        *,
        budget: Budget | None = None,
        fail_fast: bool = False,
    ) -> ProgramOutcome:
        """Load a Python program and run tests against it.

        Args:
            budget: time that this program may use; None for the sandbox's limits.
            fail_fast: stop at the first failed test.

        Raises:
            EngineError: the sandbox failed twice.
        """
        task = {"source": source, "setup": setup, "tests": list(tests), "fail_fast": fail_fast}
        task["literal"] = are_literal(setup, tests)
        return self._check(task, budget)

    def call(
        self,
        source: str,
        name: str,
        cases: Sequence[object],
        *,
        budget: Budget | None = None,
        fail_fast: bool = False,
    ) -> ProgramOutcome:
        """Load a Python program and compare what its function returns, case by case.

        Args:
            cases: objects with `args` and `expected`.
            budget: time that this program may use; None for the sandbox's limits.
            fail_fast: stop at the first failed case.

        Raises:
            EngineError: the sandbox failed twice.
        """
        task = {"source": source, "function": name, "cases": list(cases), "fail_fast": fail_fast}
        return self._check(task, budget)

    def execute(
        self,
        build: Build,
        inputs: Sequence[str],
        find_fault: Callable[[int, ProgramRun], str],
        *,
        budget: Budget | None = None,
        fail_fast: bool = False,
    ) -> Runs:
        """Compile a program once and run it on every input.

        Args:
            find_fault: returns why a run failed, given its index; empty if it passed.
            budget: time that this program may use; None for the sandbox's limits.
            fail_fast: stop at the first failure.

        Raises:
            EngineError: the sandbox failed twice.
        """
        allowance = budget or Budget(self.limits)
        return self._with_retry(
            lambda session: session.execute(
                build, inputs, find_fault, allowance, fail_fast=fail_fast
            )
        )

    def close(self) -> None:
        """End all processes; a later run starts new ones."""
        if self._owner != os.getpid():
            return
        while self._all:
            self._all.pop().close()
        self._idle = queue.LifoQueue()

    def _check(self, task: dict[str, object], budget: Budget | None) -> ProgramOutcome:
        allowance = budget or Budget(self.limits)
        return self._with_retry(lambda session: session.check(task, allowance))

    def _with_retry(self, use: Callable[[Session], ResultT]) -> ResultT:
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
        """Check out a process; one that raised is closed and not reused."""
        if self._owner != os.getpid():  # a forked child must not use its parent's sockets
            self._reset()
        with self._slots:
            session = self._acquire()
            try:
                yield session
            except BaseException:
                session.close()
                self._all.remove(session)
                raise
            self._idle.put(session)

    def _acquire(self) -> Session:
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

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._idle: queue.LifoQueue[Session] = queue.LifoQueue()
        self._all: list[Session] = []
        self._slots = threading.BoundedSemaphore(self._size)


def shared_sandbox() -> Sandbox:
    """Return the sandbox that all verifiers of this process share.

    Raises:
        SettingsError: no sandbox of the required level works here.
    """
    with _OPENING:  # or two threads could each open one
        return _open_shared()


@functools.cache
def _open_shared() -> Sandbox:
    return Sandbox()
