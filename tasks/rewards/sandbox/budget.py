"""What one program uses of the machine, seen from outside the sandbox.

A program's own time is what it computes and what it sleeps; the time in which one of its threads
wants a CPU and gets none, or is stopped, is the machine's. A program fails for its own time only.
Behind that stands a limit on the clock: what reaches it was starved, and has no verdict.

What a program computed is compared with its limit by the kernel's count after every test and every
run, so that the verdict does not depend on when `Watch` looked. `Watch` ends programs that do not
finish, and estimates how long a program slept.

Threads are read from the host's /proc (Linux with CONFIG_SCHED_INFO). Where there is none, the
kernel's limit on CPU time stays, and everything else ends on the clock.
"""

import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.rewards.sandbox.limits import Limits

TICK_S = 0.1
_PROGRESS_S = 0.01
"""CPU time that counts as doing something: a Java machine that waits uses a little."""
_ASLEEP = frozenset("SIZX")
"""States of a thread that wants nothing: asleep, idle, dead. Not among them: runnable, in a page
fault, stopped."""
_NANOSECOND = 1e-9


class Budget:
    """What all runs of one program may use together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.own_s = self.longest_s = 0.0
        """Of all runs so far, and of the longest."""
        self._deadline = time.monotonic() + limits.wall_s

    @property
    def is_spent(self) -> bool:
        """True if the program has used up its own time."""
        return self.own_s >= self.limits.total_s

    def covers(self, cpu_s: float) -> bool:
        """True if the program's own time is within the limit after a run of so much CPU time."""
        return self.own_s + cpu_s <= self.limits.total_s

    @property
    def left_s(self) -> float:
        """Seconds on the clock until the program counts as starved; never 0."""
        return max(0.01, self._deadline - time.monotonic())

    @property
    def is_late(self) -> bool:
        """True if the clock has run out."""
        return time.monotonic() >= self._deadline


@dataclass(frozen=True, slots=True)
class _Thread:
    """What the kernel says about a thread."""

    key: int
    state: str
    cpu_s: float
    delayed_s: float
    """Ready to run, and waiting for a CPU."""


class Watch:
    """Looks at one run of a program while its result is waited for.

    Args:
        root: the process that all of the sandbox's processes descend from.
    """

    def __init__(self, root: int, budget: Budget) -> None:
        self._root, self._budget = root, budget
        self._looked_s = time.monotonic()
        self._before: dict[int, _Thread] | None = None
        self._cpu_s = self._own_s = 0.0
        self._slept_s = 0.0
        """Known at the last look at which no thread wanted a CPU."""
        self._mark_cpu_s = self._mark_own_s = 0.0
        """When it last computed."""

    def wait(self, link: socket.socket) -> str:
        """Wait until there is something to read; or say why not: 'idle', 'spent' or 'starved'."""
        poll = select.poll()
        poll.register(link, select.POLLIN)
        while True:
            is_ready = bool(poll.poll(TICK_S * 1000))
            if time.monotonic() - self._looked_s >= TICK_S:
                why = self._look()
                if why:
                    return why
            if is_ready:
                return ""
            if self._budget.is_late:
                return "starved"

    def settle(self, cpu_s: float) -> None:
        """Add the run to the program's own time, given the CPU time that the kernel counted."""
        own_s = max(cpu_s, self._cpu_s) + self._slept_s
        self._budget.own_s += own_s
        self._budget.longest_s = max(self._budget.longest_s, own_s)

    def _look(self) -> str:
        # This process may have been kept waiting itself, and did not see what passed.
        elapsed_s = min(time.monotonic() - self._looked_s, 2 * TICK_S)
        self._looked_s = time.monotonic()
        threads = {thread.key: thread for thread in _threads(self._root)}
        before, self._before = self._before, threads
        if before is None or not threads:
            return ""
        nothing = _Thread(0, "", 0.0, 0.0)
        new = [(thread, before.get(key, nothing)) for key, thread in threads.items()]
        self._cpu_s += sum(thread.cpu_s - old.cpu_s for thread, old in new)
        is_stopped = any(thread.state in "Tt" for thread in threads.values())
        delayed_s = sum(thread.delayed_s - old.delayed_s for thread, old in new)
        # A wait for a CPU is known when it is over; until then no thread is asleep.
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
    found = [root]
    while found:
        for task in _listed(Path(f"/proc/{found.pop()}/task")):
            try:
                # The name before the bracket is the program's to choose.
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                cpu, delayed, _ = map(int, (task / "schedstat").read_text().split())
                found += map(int, (task / "children").read_text().split())
            except OSError:
                continue
            yield _Thread(int(task.name), state, cpu * _NANOSECOND, delayed * _NANOSECOND)


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
