"""Calls to functions that may hang, in processes that can be killed.

A worker is a fresh interpreter (no fork of a process full of threads, no second import of the main
script) that runs one call at a time in its main thread. One that overruns its time is killed,
reaped and replaced at the next call. Workers start when first needed and end with their parent:
idle ones see the closed pipe, busy ones are ended by their own kernel timer.
"""

import atexit
import contextlib
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tasks.errors import EngineError

START_TIMEOUT_S = 120.0
"""For starting Python and importing the function's module, on a busy machine."""
MEMORY_BYTES = 4 * 2**30


class WorkerTimeout(EngineError):
    """A call took longer than allowed; its worker was killed."""


class WorkerFailed(EngineError):
    """A worker died or a call raised; the message says which error."""


class WorkerPool:
    """At most `num_workers` processes; safe to use from several threads."""

    def __init__(self, num_workers: int = 2) -> None:
        self._slots = threading.BoundedSemaphore(num_workers)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._owner = os.getpid()
        atexit.register(self.close)

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
        """Call an importable function with picklable arguments.

        Raises:
            WorkerTimeout: the call did not end in time.
            WorkerFailed: the call raised, or its process died.
        """
        with self._slots, self._worker() as worker:
            return worker.run(function, args, timeout_s)

    def close(self) -> None:
        """End all idle workers; a later call starts new ones."""
        if self._owner != os.getpid():
            return
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextlib.contextmanager
    def _worker(self) -> Iterator["_Worker"]:
        if self._owner != os.getpid():  # a forked child must not talk on its parent's pipes
            self._owner, self._idle = os.getpid(), queue.LifoQueue()
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
        try:
            yield worker
        finally:
            if worker.alive:
                self._idle.put(worker)
            else:
                worker.close()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self.alive = True
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tasks.rewards.worker_pool", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
            )

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
        """Send one call and wait; any failure but the call's own leaves the worker dead."""
        self.alive = False
        try:
            self._pipe.send((function, args, timeout_s))
            if not self._pipe.poll(START_TIMEOUT_S):
                raise WorkerFailed("worker did not start")
            self._pipe.recv()
            if not self._pipe.poll(timeout_s):
                raise WorkerTimeout(f"{function.__name__} took longer than {timeout_s} s")
            succeeded, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerFailed(f"worker died in {function.__name__}") from error
        self.alive = True
        if not succeeded:
            raise WorkerFailed(str(value))
        return value

    def close(self) -> None:
        """Kill and reap."""
        self.alive = False
        self._pipe.close()
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Serve calls until the pipe closes."""
    pipe = Connection(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while True:
        try:
            function, args, timeout_s = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send("started")
        # Ends this process even inside a C loop, should the parent be gone by then.
        signal.setitimer(signal.ITIMER_REAL, 2 * timeout_s + 1)
        try:
            reply = (True, function(*args))
        except BaseException as error:  # noqa: BLE001 - the boundary: the parent gets the error's name
            reply = (False, f"{type(error).__name__}: {str(error)[:200]}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(reply)


if __name__ == "__main__":
    main()
