"""Whether processes compute: CPU time and disk transfers between two looks.

A process that waits forever, for a peer, a lock or a disk, uses neither. A wait for a GPU is not
seen: CUDA polls.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

WORK_S = 0.02
"""CPU seconds between two looks, a second apart, that count as work: a starved process gets more,
idle threads use less."""
STILL_LOOKS = 45
"""Processes with work to do that compute nothing for so many looks hang."""
_IO = Path("/proc/self/io")


class Activity:
    """Work of this process without that of the thread that looks, and of the processes below it."""

    def __init__(self) -> None:
        self._cpu_s, self._bytes = _cpu_s(), _disk_bytes()
        self._children = ProcessCpuTime(_children())
        self.children_moved = False
        """Result of the last look: whether a process below this one worked."""

    def moved(self) -> bool:
        """True if there was work since the last look."""
        cpu_s, transferred = _cpu_s(), _disk_bytes()
        moved = cpu_s - self._cpu_s >= WORK_S or transferred != self._bytes
        self._cpu_s, self._bytes = cpu_s, transferred
        self.children_moved = self._children.moved(_children())
        return self.children_moved or moved


class ProcessCpuTime:
    """CPU time of other processes."""

    def __init__(self, processes: Iterable[psutil.Process]) -> None:
        self._seen = dict(_times(processes))

    def moved(self, processes: Iterable[psutil.Process]) -> bool:
        """True if one of them has computed since the last look."""
        now = dict(_times(processes))
        moved = any(cpu_s - self._seen.get(pid, 0.0) >= WORK_S for pid, cpu_s in now.items())
        self._seen = now
        return moved


class Watch:
    """How often processes with work to do were seen standing still, or one of them stopped."""

    def __init__(self, processes: Sequence[psutil.Process]) -> None:
        self._processes = processes
        self._computing = ProcessCpuTime(processes)
        self._looks = 0

    def hangs(self) -> bool:
        """Look, a second after the last look; True if they hang."""
        moved = self._computing.moved(self._processes)
        self._looks = 0 if moved and not any(map(_is_stopped, self._processes)) else self._looks + 1
        return self._looks >= STILL_LOOKS


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # it has ended
        return process.status() == psutil.STATUS_STOPPED
    return False


def _times(processes: Iterable[psutil.Process]) -> Iterator[tuple[int, float]]:
    for process in processes:
        with suppress(psutil.Error):  # it has ended
            used = process.cpu_times()
            yield process.pid, used.user + used.system


def _children() -> list[psutil.Process]:
    with suppress(psutil.Error):  # one of them has ended meanwhile
        return psutil.Process().children(recursive=True)
    return []


def _cpu_s() -> float:
    return time.process_time() - time.thread_time()


def _disk_bytes() -> tuple[str, ...]:
    """Bytes read from and written to disks; nothing where the system does not count them."""
    try:
        lines = _IO.read_text().splitlines()
    except OSError:
        return ()
    return tuple(line for line in lines if line.startswith(("read_bytes", "write_bytes")))
