"""A bare Python that forks a fresh judge and a fresh candidate for every program.

Started by `runner` with `BOOT`, an empty environment and a socket as standard input. It never reads
a program or a test: those go straight to its children, so no child inherits what another one saw.
Protocol on the socket:

    to the runner    {"filter": bool, "files": bool}: which confinement works here
    from the runner  b"S" with three sockets: the judge's to the runner, both ends of their link
    from the runner  b"E": end them
    to the runner    how both ended
"""

import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path

from tasks.rewards.sandbox import candidate, judge, wire
from tasks.rewards.sandbox.confinement import CallFilter, hide_files, limit

BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tasks.rewards.sandbox.zygote import main; del sys.path[0]; main()"
)
"""What the interpreter runs. Arguments: folder of the project, memory in bytes, CPU in seconds."""

PRELOADED = (
    *("array", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime"),
    *("decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "queue"),
    *("operator", "random", "re", "statistics", "string", "struct", "textwrap", "time", "typing"),
    "unicodedata",
)
"""Modules programs use often; importing them once costs less than once per program."""


def main() -> None:
    """Serve the runner until it hangs up."""
    memory_bytes, cpu_s = int(sys.argv[1]), int(sys.argv[2])
    control = socket.socket(fileno=os.dup(0))
    _silence()
    for name in PRELOADED:
        __import__(name)
    filtering = CallFilter()
    files = hide_files(_library_folders())
    wire.send(control, {"filter": filtering.works, "files": files})
    gc.collect()
    gc.freeze()
    while True:
        message, sockets, _, _ = socket.recv_fds(control, 1, 3)
        if not message:
            return
        if message == b"S" and len(sockets) == 3:
            parent_end, judge_end, candidate_end = sockets
            judged = _fork(sockets[:2], filtering, 2 * memory_bytes, 2 * cpu_s)
            tested = _fork(sockets[2:], filtering, memory_bytes, cpu_s)
            for handle in (parent_end, judge_end, candidate_end):
                os.close(handle)
            select.select([control], [], [])
            statuses = {"candidate": _end(tested), "judge": _end(judged)}
            if control.recv(1) != b"E":
                return
            wire.send(control, statuses)


def _fork(handles: list[int], filtering: CallFilter, memory_bytes: int, cpu_s: int) -> int:
    """Fork a judge (two sockets) or a candidate (one) and return its process id."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        _close_all_but(handles)
        sockets = [socket.socket(fileno=handle) for handle in handles]
        limit(cpu_s=cpu_s, memory_bytes=memory_bytes)
        filtering.install()
        if len(sockets) == 2:
            judge.serve(*sockets)
        else:
            candidate.serve(*sockets)
    finally:
        os._exit(0)


def _end(process: int) -> dict[str, float]:
    """Kill a child with its group, reap it, and say how it ended."""
    for kill in (os.killpg, os.kill):
        try:
            kill(process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    _, status, usage = os.wait4(process, 0)
    return {
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _close_all_but(handles: list[int]) -> None:
    first = 3
    for handle in sorted(handles):
        os.closerange(first, handle)
        first = handle + 1
    os.closerange(first, 1024)


def _library_folders() -> list[Path]:
    """What imports read: the standard library, system libraries, the null device."""
    standard = Path(os.__file__).parent
    system = [Path(name) for name in ("/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo")]
    devices = [Path(name) for name in ("/dev/null", "/dev/urandom")]
    return [standard, *system, *devices]
