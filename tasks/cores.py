"""How many cores this process may use: its affinity, its container's quota, EACHPROMPT_CORES.

What is divided over them is divided by its own size, so that no result depends on this number.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import SettingsError

LIMIT = "EACHPROMPT_CORES"
"""Most cores that a process of this project uses; unset = all that it may."""


def num_cores(root: Path = Path("/")) -> int:
    """Count the cores that this process may use; at least one.

    Args:
        root: of the file system.

    Raises:
        SettingsError: EACHPROMPT_CORES is no count.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    # Of half a core nothing is left for a second process.
    cores = max(1, min([cores, *map(int, _quotas(root))]))
    limit = os.environ.get(LIMIT, "")
    if not limit:
        return cores
    if not (limit.isascii() and limit.isdecimal()) or int(limit) < 1:
        raise SettingsError(f"{LIMIT} is {limit!r}; give a whole number from 1 on, or unset it")
    return min(cores, int(limit))


def memory_left(root: Path = Path("/")) -> Iterator[int]:
    """Yield the bytes that each control group of this process may still take, where it has a limit.

    Args:
        root: of the file system.
    """
    for folder, version in _groups("memory", root):
        names = ("memory.max", "memory.current")
        if version == 1:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        try:
            limit, usage = ((folder / name).read_text().strip() for name in names)
        except OSError:
            continue
        if limit != "max":
            yield max(0, int(limit) - int(usage))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the cores that each control group of this process has, where it has a quota."""
    for folder, version in _groups("cpu", root):
        try:
            if version == 1:
                quota = (folder / "cpu.cfs_quota_us").read_text()  # -1 without one
                period = (folder / "cpu.cfs_period_us").read_text()
            else:
                quota, period = (folder / "cpu.max").read_text().split()  # max 100000
        except OSError:
            continue
        if quota != "max" and int(quota) > 0:
            yield int(quota) / int(period)


def _groups(controller: str, root: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folder of each control group of this process and its parents, with the version."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:  # 0::/user.slice of version 2, 4:cpu,cpuacct:/docker/ab of version 1
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / (controller if controllers else "")
        # A container sees its own group as the root, but the path may be that of the host.
        place = Path(group.lstrip("/"))
        for part in dict.fromkeys([place, *place.parents]):
            yield mount / part, 1 if controllers else 2
