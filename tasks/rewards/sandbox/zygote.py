"""A bare Python that forks fresh processes for every program, and ends them.

Started by `session` with `BOOT`, an empty environment and a socket as standard input. It never
reads a program or a test: those go straight to its children, so no child inherits what another one
saw.
Protocol on the socket:

    to the caller    {"filter": bool, "files": bool}: which confinement works here
    from the caller  b"S", a byte for the candidate's CPU seconds, and three sockets: the judge's to
                     the caller, both ends of their link
                     b"X", a byte of no meaning, and one socket: the workbench's to the caller
    from the caller  b"E": end them
    to the caller    how each of them ended
"""

import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tasks.rewards.sandbox import candidate, judge, wire, workbench
from tasks.rewards.sandbox.calls import CallFilter, Calls
from tasks.rewards.sandbox.confinement import (
    Bounds,
    adopt_orphans,
    die_with_parent,
    hide_files,
    limit,
)

BOOT = (
    "import os, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "register, os.register_at_fork = os.register_at_fork, lambda **_: None; "
    "from tasks.rewards.sandbox.zygote import main, preload; preload(); "
    "os.register_at_fork = register; del register, sys.path[0]; main()"
)
"""What the interpreter runs. Arguments: folder of the project, `Orders` as JSON.

Modules may not have code run at every fork, which takes half of a child's start: they draw a new
random state, which the children set themselves, and look after threads, of which there are none.
"""

PRELOADED = (
    *("array", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime"),
    *("decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "queue"),
    *("operator", "random", "re", "statistics", "string", "struct", "textwrap", "time", "typing"),
    "unicodedata",
)
"""Modules programs use often; importing them once costs less than once per program."""
_REAP_S = 5.0
_REHEARSALS = 20
_SOURCE = "def f(x, y=()):\n    return [x, y, {1: 'a'}]"
_TEST = "assert f(1, (2.5, True)) == [1, (2.5, True), {1: 'a'}]"


@dataclass(frozen=True, slots=True)
class Orders:
    """What the caller decides once."""

    confined: bool
    """By Landlock and system call filters, as far as the machine has them."""
    memory_bytes: int
    readable: list[str]
    """Files and folders that programs and compilers may read."""
    work: str
    """The only folder that a compiler may write to; emptied after every program."""
    removes_work: bool
    """Nothing else removes that folder if the caller is killed."""


def main() -> None:
    """Serve the caller until it hangs up."""
    orders = Orders(**json.loads(sys.argv[1]))
    control = socket.socket(fileno=os.dup(0))
    _silence()
    if orders.removes_work:
        _leave_a_janitor(control, Path(orders.work))
    adopt_orphans()
    filtering = CallFilter(Calls.FUNCTIONS)
    # Plain processes can escape from their group; /proc, where they are found, must stay visible.
    files = orders.confined and hide_files(
        [Path(path) for path in orders.readable], [Path(orders.work)]
    )
    wire.send(control, {"filter": filtering.works, "files": files})
    gc.collect()
    gc.freeze()
    while True:
        message, sockets, _, _ = socket.recv_fds(control, 2, 3)
        if len(message) != 2:
            return
        children = _start(message[:1], message[1], sockets, filtering, orders)
        is_problem_prompt = control.recv(1) == b"E"
        statuses = {name: _end(child) for name, child in children.items()}
        is_clean = _reap()
        _empty(Path(orders.work))
        if not is_problem_prompt or not is_clean:
            return  # with a namespace of its own, whatever is left ends with this process
        wire.send(control, statuses)


def preload() -> None:
    """Import what programs use often, and rehearse what every child does.

    What is imported, cached and specialised here is shared; a child would pay for its own copy.
    """
    for name in PRELOADED:
        importlib.import_module(name)
    call = {"call": 0, "args": {"list": [1, {"tuple": [2.5, True]}]}, "kwargs": {"dict": []}}
    task = {"source": _SOURCE, "setup": "", "tests": [_TEST] * _REHEARSALS, "early": False}
    one = candidate.Candidate()
    for request in ({"load": _SOURCE}, {"lookup": "f"}, *[call] * _REHEARSALS):
        one.answer(request)
    parent, judge_parent = socket.socketpair()
    link, candidate_link = socket.socketpair()
    # Not a thread: the memory it reserves would be missing in every child.
    player = os.fork()
    if not player:
        candidate.serve(candidate_link)
    with parent, judge_parent, link, candidate_link:
        wire.send(parent, task)
        judge.serve(judge_parent, link, player)
        link.shutdown(socket.SHUT_RDWR)
    os.waitpid(player, 0)


def _leave_a_janitor(control: socket.socket, work: Path) -> None:
    """Go on in a child; this process waits for its end and removes the work folder.

    The zygote itself cannot: the folder above is not its to write.
    """
    zygote = os.fork()
    if zygote:
        control.close()
        os.waitpid(zygote, 0)
        shutil.rmtree(work, ignore_errors=True)
        os._exit(0)
    die_with_parent()


def _start(
    message: bytes, cpu_s: int, sockets: list[int], filtering: CallFilter, orders: Orders
) -> dict[str, int]:
    memory = orders.memory_bytes
    if message == b"S" and len(sockets) == 3:
        confined = filtering if orders.confined and filtering.works else None
        tested = _fork(sockets[2:], Bounds(cpu_s, memory), confined, orders)
        bounds = Bounds(2 * cpu_s, 2 * memory)
        children = {
            "judge": _fork(sockets[:2], bounds, confined, orders, tested=tested),
            "candidate": tested,
        }
    elif message == b"X" and len(sockets) == 1:
        children = {"workbench": _fork(sockets, None, None, orders)}
    else:
        raise wire.WireError(f"unknown order {message!r}")
    for handle in sockets:
        os.close(handle)
    return children


def _fork(
    handles: list[int],
    bounds: Bounds | None,
    filtering: CallFilter | None,
    orders: Orders,
    *,
    tested: int = 0,
) -> int:
    """Fork a judge (two sockets), a candidate (one) or a workbench (no bounds); return its id."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        die_with_parent()
        _close_all_but(handles)
        sockets = [socket.socket(fileno=handle) for handle in handles]
        if bounds is None:
            filtered = orders.confined and CallFilter(Calls.PROGRAM).works
            workbench.serve(sockets[0], Path(orders.work), filtered=filtered)
            os._exit(0)
        limit(bounds)
        if filtering is not None and not filtering.install():
            os._exit(1)
        if tested:
            judge.serve(sockets[0], sockets[1], tested)
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


def _reap() -> bool:
    """Kill and reap what is left below this process; False if something cannot be found."""
    deadline = time.monotonic() + _REAP_S
    while time.monotonic() < deadline:
        for process in _orphans():
            try:
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not process:
            time.sleep(0.005)
    return False


def _orphans() -> list[int]:
    """Return this process's children where /proc can be read, which is where they can escape."""
    try:
        own = os.getpid()
        return [int(one) for one in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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
