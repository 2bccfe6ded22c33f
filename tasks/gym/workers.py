"""Run functions that may hang, crash or exhaust memory in processes that can be killed."""

import atexit
import contextlib
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tasks.errors import EngineError, SettingsError

# A worker is a fresh interpreter (no fork of a multi-threaded process, no second import of the
# main script) that runs one call at a time in its main thread. A worker that exceeds its time
# limit is killed with everything it started, reaped and replaced at the next call. Workers start
# when first needed, discard their output, and end with their parent: idle ones when the pipe
# closes, busy ones by their own kernel timers.
#
# A call's time limit is in CPU seconds of its worker, so that other load on the machine does not
# change a result. A call also ends after `WALL_FACTOR` times as many wall-clock seconds, if it
# waits or gets too little CPU time. That failure is `STARVED`.
#
# Calls are sent in series, with one reply each, so that short calls do not pay for a message each.
# A pool inside a worker starts no processes: its calls run in place under the same kernel timers,
# whose signal ends the worker, and the outer pool reads the failure from the signal.

START_TIMEOUT_S = 120.0
"""Time to start Python and import the function's module on a busy machine."""
WALL_FACTOR = 20.0
"""Wall-clock seconds per CPU second of a limit: room for twenty times the load."""
MEMORY_BYTES = 4 * 2**30
CALLS_PER_WORKER = 20_000
"""Calls after which a worker is replaced, to free what its calls leak."""
INSIDE = "EACHPROMPT_WORKER"
"""Set in the environment of a worker: what it calls starts no further processes."""
_BOOT = "from tasks.gym.workers import main; main()"
_TICK_S = 0.2
_SLACK_S = 2.0
"""Grace period for the worker's own timer; then the parent kills it (a stopped worker)."""


class WorkerTimeout(EngineError):
    """A call used more CPU time than allowed; its worker was killed."""


class WorkerStarvation(WorkerTimeout):
    """A call used little CPU time and exceeded its wall-clock limit; its worker was killed."""


class WorkerFailure(EngineError):
    """A worker died or a call raised; the message names the error."""


class CallFailure(StrEnum):
    """Why a call has no value."""

    NONE = ""
    RAISED = "raised"
    TIMEOUT = "timeout"
    STARVED = "starved"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """Result of one call."""

    value: Any = None
    failure: CallFailure = CallFailure.NONE
    error: str = ""
    """Name of the exception's type."""
    is_ours: bool = False
    """As the function `is_ours` says of the exception."""
    message: str = ""
    seconds: float = 0.0
    """Duration of the call, measured in the worker."""

    @property
    def may_be_repeated(self) -> bool:
        """True if earlier calls of the same worker may have caused the failure."""
        return self.failure is CallFailure.DIED or self.error == "MemoryError"

    @property
    def keeps_worker(self) -> bool:
        """True if the worker can be used again."""
        return self.failure in (CallFailure.NONE, CallFailure.RAISED) and not self.may_be_repeated


_END = {
    CallFailure.TIMEOUT: "the CPU time is used up",
    CallFailure.STARVED: "the wall-clock time is used up, the CPU time is not",
    CallFailure.DIED: "worker ended with {}",
}
_BY_SIGNAL: dict[int, CallFailure] = {
    signal.SIGPROF: CallFailure.TIMEOUT,
    signal.SIGALRM: CallFailure.STARVED,
}


class WorkerPool:
    """At most `num_workers` processes; safe to use from several threads."""

    def __init__(self, num_workers: int = 2) -> None:
        self._slots = threading.BoundedSemaphore(num_workers)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._lost = 0
        atexit.register(self.close)

    @property
    def num_lost(self) -> int:
        """How many workers were killed or died."""
        return self._lost

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
        """Call an importable function with picklable arguments.

        Args:
            timeout_s: CPU seconds.

        Raises:
            WorkerTimeout: the call used up its CPU time; `WorkerStarvation`: its wall-clock time.
            WorkerFailure: the call raised, or its process died.
        """
        if INSIDE in os.environ:
            return _call_in_place(function, args, timeout_s)
        (reply,) = self.each(function, [args], [timeout_s])
        if reply.failure is CallFailure.TIMEOUT:
            raise WorkerTimeout(f"{function.__name__}: {reply.message}")
        if reply.failure is CallFailure.STARVED:
            raise WorkerStarvation(f"{function.__name__}: {reply.message}")
        if reply.failure is CallFailure.DIED:
            raise WorkerFailure(f"worker died in {function.__name__}")
        if reply.failure is CallFailure.RAISED:
            raise WorkerFailure(f"{reply.error}: {reply.message}")
        return reply.value

    def each(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        timeouts_s: Sequence[float],
    ) -> Generator[WorkerReply, None, None]:
        """Call a function once per tuple of arguments, in order, each with its own CPU limit.

        A call whose worker dies or runs out of memory is repeated once on a fresh worker, in case
        an earlier call caused the failure. Close the generator when stopping early.

        Raises:
            WorkerFailure: a worker did not start.
        """
        place, again = 0, False
        with self._slots:
            while place < len(calls):
                with self._worker(fresh=again) as worker:
                    series = worker.series(function, calls[place:], timeouts_s[place:])
                    for reply in series:
                        if reply.may_be_repeated and not again:
                            again = True
                            break
                        place, again = place + 1, False
                        yield reply

    def close(self) -> None:
        """Stop all idle workers; a later call starts new ones."""
        if self._owner != os.getpid():
            return
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextlib.contextmanager
    def _worker(self, *, fresh: bool) -> Iterator["_Worker"]:
        if self._owner != os.getpid():  # a forked child must not use its parent's pipes
            self._owner, self._idle = os.getpid(), queue.LifoQueue()
        try:
            worker = _Worker() if fresh else self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
        try:
            yield worker
        finally:
            if worker.alive and worker.calls < CALLS_PER_WORKER:
                self._idle.put(worker)
            else:
                with self._lock:
                    self._lost += not worker.alive
                worker.close()


def start_interpreter(
    code: str, pipe: int, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter in a session of its own, which says nothing.

    Args:
        code: what it runs.
        pipe: file descriptor of its end of a pipe, which it gets as `sys.argv[1]`.
        variables: of its environment, beside those of this process.
    """
    return subprocess.Popen(
        [sys.executable, "-c", code, str(pipe)],
        pass_fds=(pipe,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            **(variables or {}),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            INSIDE: "1",
        },
        start_new_session=True,
    )


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self.alive = True
        self.calls = 0
        with theirs:
            self._process = start_interpreter(_BOOT, theirs.fileno())

    def series(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        timeouts_s: Sequence[float],
    ) -> Iterator[WorkerReply]:
        """Send calls and yield a reply to each, up to the first one that ends the worker."""
        self.alive = False
        try:
            self._pipe.send((function, calls, timeouts_s))
        except OSError:
            yield WorkerReply(failure=CallFailure.DIED)
            return
        started = self._receive(START_TIMEOUT_S)
        if started.failure is CallFailure.STARVED:
            raise WorkerFailure(f"worker did not start within {START_TIMEOUT_S} s")
        if started.failure:
            yield started
            return
        for place, timeout_s in enumerate(timeouts_s, start=1):
            reply = self._receive(WALL_FACTOR * timeout_s + _SLACK_S)
            if not reply.keeps_worker:
                yield reply
                return
            self.calls += 1
            self.alive = place == len(calls)  # before the yield: the caller may stop there
            yield reply

    def close(self) -> None:
        """Kill the worker and every process it started, and reap them."""
        self.alive = False
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _receive(self, patience_s: float) -> WorkerReply:
        """Wait for a reply; a dead worker is noticed even if its child keeps the pipe open."""
        end = time.monotonic() + patience_s
        try:
            while not self._pipe.poll(max(0.0, min(_TICK_S, end - time.monotonic()))):
                if self._ended() is not None and not self._pipe.poll(0):
                    raise EOFError
                if time.monotonic() >= end:
                    return WorkerReply(
                        failure=CallFailure.STARVED, message=_END[CallFailure.STARVED]
                    )
            return self._pipe.recv()
        except (EOFError, OSError):
            while self._ended() is None and time.monotonic() < end:
                time.sleep(0.001)  # between the closed pipe and the end of the process
            status = self._ended()
            failure = _BY_SIGNAL.get(status or 0, CallFailure.DIED)
            return WorkerReply(failure=failure, message=_END[failure].format(status))

    def _ended(self) -> int | None:
        """Return exit status or signal, None while it runs; not reaped, to keep its group id."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        result = os.waitid(os.P_PID, self._process.pid, options)
        return None if result is None else result.si_status


def main() -> None:
    """Serve series of calls until the pipe closes."""
    pipe, me = Connection(int(sys.argv[1])), os.getpid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, calls, timeouts_s = pipe.recv()
            pipe.send(WorkerReply())
            for args, timeout_s in zip(calls, timeouts_s, strict=True):
                with limited(timeout_s):
                    reply = _call(function, args)
                if os.getpid() != me:  # a child that a call forked and left running
                    os._exit(0)
                pipe.send(reply)
    os.killpg(me, signal.SIGKILL)


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> WorkerReply:
    start = time.perf_counter()
    try:
        value = function(*args)
    except BaseException as error:  # noqa: BLE001 - the boundary: the parent gets the error's name
        return WorkerReply(
            failure=CallFailure.RAISED,
            error=type(error).__name__,
            is_ours=is_ours(type(error)),
            message=str(error)[:500],
            seconds=time.perf_counter() - start,
        )
    return WorkerReply(value, seconds=time.perf_counter() - start)


def is_ours(error: type[BaseException]) -> bool:
    """True if an error points to this machine or installation, whatever was to be scored."""
    return issubclass(error, EngineError | SettingsError | OSError | ImportError)


@contextlib.contextmanager
def limited(timeout_s: float) -> Iterator[None]:
    """End this process, even in a C loop, after its CPU seconds or the wall-clock limit.

    Limits may be nested; the outer ones resume afterwards with their remaining time.
    """
    limits = {signal.ITIMER_PROF: timeout_s, signal.ITIMER_REAL: WALL_FACTOR * timeout_s}
    outer = {timer: signal.getitimer(timer)[0] for timer in limits}
    inner = {timer: min(one, outer[timer] or one) for timer, one in limits.items()}
    for timer, seconds in inner.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, seconds in inner.items():
            remaining = outer[timer] and max(
                1e-3, outer[timer] - seconds + signal.getitimer(timer)[0]
            )
            signal.setitimer(timer, remaining)


def _call_in_place(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
    with limited(timeout_s):
        reply = _call(function, args)
    if reply.failure:
        raise WorkerFailure(f"{reply.error}: {reply.message}")
    return reply.value
