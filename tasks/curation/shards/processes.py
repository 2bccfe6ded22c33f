"""Map shards in processes that are forked from one that has imported everything.

Forks share the memory of what is imported. The process that forks them is a fresh interpreter with
a single thread, so that no lock is held by a thread that a fork does not have.
"""

import gc
import logging
import os
import resource
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, count, islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import cast

from tasks.cores import num_cores
from tasks.curation.shards.mapping import Rules, ShardJob, is_complete, map_shard, prepare
from tasks.gym.workers import MEMORY_BYTES, start_interpreter
from tasks.models.architectures import needs_registration

_LOG = logging.getLogger(__name__)

LIMIT_S = 7200.0
"""CPU seconds of a shard; it takes about one."""
WORTH_BYTES = 32 * 2**20
"""Fewer raw bytes per process are mapped sooner than a process pays for itself."""
_GRACE_S = 5.0
"""Until the process that forks others has ended them, and itself."""
_BOOT = "from tasks.curation.shards.processes import main; main()"
_WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; "
"""For transformers, torch is then not installed: tokenizers do without it, and it takes 130 MB."""
_VARIABLES: Mapping[str, str] = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # mimalloc keeps some 35 MB per process to itself
}


def num_workers(raw_bytes: int) -> int:
    """Return the number of processes for an input of a size; 0 = this one alone."""
    cores = num_cores()
    return 0 if cores == 1 else min(cores, raw_bytes // WORTH_BYTES)


def map_shards(jobs: Iterable[ShardJob], rules: Rules, workers: int) -> Iterator[ShardJob]:
    """Write all shards; yield them in order as they are complete.

    At most two shards per process are in memory. A shard whose process dies is mapped in this one,
    whose verifiers have processes of their own to fail in. No process is started for shards that
    are complete.

    Args:
        jobs: in order.
        rules: for all of them.
        workers: number of processes; 0 = this one.
    """
    rest = iter(jobs)
    for job in rest:
        if workers and not is_complete(job):
            yield from _map_in_processes(chain([job], rest), rules, workers)
            return
        map_shard(job, rules)
        yield job


def _map_in_processes(jobs: Iterable[ShardJob], rules: Rules, workers: int) -> Iterator[ShardJob]:
    rest, waiting = enumerate(jobs), deque[tuple[int, ShardJob]]()
    server = _Server(rules, workers)
    try:
        while True:
            for number, job in islice(rest, 2 * workers - len(waiting)):
                server.send(job)
                waiting.append((number, job))
            if not waiting:
                return
            number, job = waiting.popleft()
            if failure := server.result(number):
                _LOG.warning("shard %s: %s; it is mapped here", job.out.name, failure)
                map_shard(job, rules)
            yield job
    finally:
        server.close()


class _Server:
    """The process that forks, seen from this one."""

    def __init__(self, rules: Rules, workers: int) -> None:
        self._pipe, theirs = Pipe()
        self._failures: dict[int, str] = {}
        is_ours = needs_registration(rules.base_model)  # whose code imports torch
        boot = _BOOT if is_ours else _WITHOUT_TORCH + _BOOT
        with theirs:
            self._process = start_interpreter(boot, theirs.fileno(), _VARIABLES)
        with suppress(OSError):  # `result` says so of every shard
            self._pipe.send((rules, workers))

    def send(self, job: ShardJob) -> None:
        """Let a shard be mapped."""
        with suppress(OSError):
            self._pipe.send(job)

    def result(self, number: int) -> str:
        """Wait until a shard that was sent is mapped.

        Args:
            number: of the shard, from 0 in the order in which they were sent.

        Returns:
            How its process failed, or ''.
        """
        while number not in self._failures:
            try:
                index, failure = self._pipe.recv()
            except (EOFError, OSError):
                return "the process that forks others ended"
            self._failures[index] = failure
        return self._failures.pop(number)

    def close(self) -> None:
        """End the process and every one that it forked; what is not done yet stays undone."""
        self._pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def main() -> None:
    """Hand the jobs that are sent to forks of this process, until the pipe closes."""
    pipe = Connection(int(sys.argv[1]))
    forks: list[_Fork] = []
    idle: list[_Fork] = []
    busy: dict[Connection, tuple[int, _Fork]] = {}
    with suppress(EOFError, OSError):
        rules, workers = pipe.recv()
        prepare(rules)
        gc.collect()
        gc.freeze()  # a search for cycles in a fork would write to, and so copy, every shared page
        numbers = count()
        while True:
            for end in wait([*busy, *([pipe] if len(busy) < workers else [])]):
                if end is pipe:
                    job = pipe.recv_bytes()
                    if not idle:
                        idle.append(_Fork(rules))
                        forks.append(idle[-1])
                    fork = idle.pop()
                    fork.pipe.send_bytes(job)
                    busy[fork.pipe] = next(numbers), fork
                else:
                    number, fork = busy.pop(cast("Connection", end))
                    failure = fork.failure()
                    pipe.send((number, failure))
                    if not failure:
                        idle.append(fork)
    for fork in forks:
        fork.kill()


class _Fork:
    """A process that maps shards, seen from the one that forked it."""

    def __init__(self, rules: Rules) -> None:
        self.pipe, theirs = cast("tuple[Connection, Connection]", Pipe())
        self._pid = os.fork()
        if not self._pid:
            self.pipe.close()  # or this process would not notice that its parent ended
            _serve(theirs, rules)
        theirs.close()

    def kill(self) -> None:
        """End the process, and count its CPU seconds among those of its parent."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def failure(self) -> str:
        """Return how the process failed, or '' if it mapped the shard."""
        try:
            self.pipe.recv()
        except (EOFError, OSError):
            self.pipe.close()
            _, status = os.waitpid(self._pid, 0)
            self._pid = 0
            code = os.waitstatus_to_exitcode(status)
            return f"its process ended with {'signal' if code < 0 else 'status'} {abs(code)}"
        return ""


def _serve(pipe: Connection, rules: Rules) -> None:
    """Map shards until one fails, and end this process."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        while True:
            job: ShardJob = pipe.recv()
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
            map_shard(job, rules)
            pipe.send(None)
    finally:
        os._exit(1)
