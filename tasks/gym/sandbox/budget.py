"""Time that one program uses, measured from outside the sandbox.

A program's own time is its CPU time and its sleep. Time in which one of its threads waits for a
CPU, or is stopped, is not counted. A program fails only because of its own time. A program that
reaches the limit on wall-clock time has not received enough CPU time and gets no verdict.

CPU time is compared with the limit by the kernel's count after every test and every run, so that a
verdict does not depend on when the program was sampled. `UsageMonitor` ends programs that do not
finish, and measures sleep.

Threads are read from the host's /proc (Linux with CONFIG_SCHED_INFO). Without it, only the kernel's
limit on CPU time and the limit on wall-clock time apply.
"""

import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.gym.sandbox.limits import Limits

SAMPLE_INTERVAL_S = 0.1
_PROGRESS_S = 0.01
"""CPU time below which a program is idle: a waiting JVM uses a little."""
_ASLEEP = frozenset("SIZX")
"""States of a thread that does not need a CPU: asleep, idle, dead; not runnable, in a page fault
or stopped."""
_NANOSECOND = 1e-9


class Budget:
    """Time that all runs of one program may use together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.own_s = self.longest_s = 0.0
        """Own time of all runs so far, and of the longest run."""
        self._deadline = time.monotonic() + limits.wall_s

    @property
    def is_spent(self) -> bool:
        """True if the program has used up its own time."""
        return self.own_s >= self.limits.total_s

    def covers(self, cpu_s: float) -> bool:
        """True if the program's own time stays within the limit after a run of `cpu_s`."""
        return self.own_s + cpu_s <= self.limits.total_s

    @property
    def remaining_s(self) -> float:
        """Wall-clock seconds until the program counts as starved; never 0."""
        return max(0.01, self._deadline - time.monotonic())

    @property
    def is_late(self) -> bool:
        """True if the wall-clock time is used up."""
        return time.monotonic() >= self._deadline


@dataclass(frozen=True, slots=True)
class _Thread:
    """The kernel's statistics of a thread."""

    key: int
    state: str
    cpu_s: float
    delayed_s: float
    """Runnable, and waiting for a CPU."""


class UsageMonitor:
    """Samples one run of a program while the caller waits for its result.

    Args:
        root: the process that all of the sandbox's processes descend from.
    """

    def __init__(self, root: int, budget: Budget) -> None:
        self._root, self._budget = root, budget
        self._sampled_s = time.monotonic()
        self._before: dict[int, _Thread] | None = None
        self._cpu_s = self._own_s = 0.0
        self._slept_s = 0.0
        """As of the last sample in which every thread was asleep."""
        self._mark_cpu_s = self._mark_own_s = 0.0
        """At the last sample with progress."""

    def wait(self, link: socket.socket) -> str:
        """Wait until there is something to read; else return 'idle', 'spent' or 'starved'."""
        poll = select.poll()
        poll.register(link, select.POLLIN)
        while True:
            is_ready = bool(poll.poll(SAMPLE_INTERVAL_S * 1000))
            if time.monotonic() - self._sampled_s >= SAMPLE_INTERVAL_S:
                why = self._sample()
                if why:
                    return why
            if is_ready:
                return ""
            if self._budget.is_late:
                return "starved"

    def charge(self, cpu_s: float) -> None:
        """Add the run to the budget, given the CPU time that the kernel counted."""
        own_s = max(cpu_s, self._cpu_s) + self._slept_s
        self._budget.own_s += own_s
        self._budget.longest_s = max(self._budget.longest_s, own_s)

    def _sample(self) -> str:
        # This process may have waited for a CPU itself, during which nothing was sampled.
        elapsed_s = min(time.monotonic() - self._sampled_s, 2 * SAMPLE_INTERVAL_S)
        self._sampled_s = time.monotonic()
        threads = {thread.key: thread for thread in _threads(self._root)}
        before, self._before = self._before, threads
        if before is None or not threads:
            return ""
        nothing = _Thread(0, "", 0.0, 0.0)
        new = [(thread, before.get(key, nothing)) for key, thread in threads.items()]
        self._cpu_s += sum(thread.cpu_s - old.cpu_s for thread, old in new)
        is_stopped = any(thread.state in "Tt" for thread in threads.values())
        delayed_s = sum(thread.delayed_s - old.delayed_s for thread, old in new)
        # The kernel counts a wait for a CPU when it ends; until then the thread is not asleep.
        self._own_s += 0.0 if is_stopped else elapsed_s - delayed_s
        self._own_s = max(self._own_s, self._cpu_s)
        if all(thread.state in _ASLEEP for thread in threads.values()):
            self._slept_s = self._own_s - self._cpu_s
        own_s = self._cpu_s + self._slept_s
        if self._cpu_s > self._mark_cpu_s + _PROGRESS_S:
            self._mark_cpu_s, self._mark_own_s = self._cpu_s, own_s
        if not self._budget.covers(own_s):
            return "spent"
        return "idle" if own_s - self._mark_own_s > self._budget.limits.idle_s else ""


def _threads(root: int) -> Iterator[_Thread]:
    """Read every thread of a process and of its descendants."""
    results = [root]
    while results:
        for task in _list(Path(f"/proc/{results.pop()}/task")):
            try:
                # The program chooses the name before the bracket.
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                cpu, delayed, _ = map(int, (task / "schedstat").read_text().split())
                results += map(int, (task / "children").read_text().split())
            except OSError:
                continue
            yield _Thread(int(task.name), state, cpu * _NANOSECOND, delayed * _NANOSECOND)


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
