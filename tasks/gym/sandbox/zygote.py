"""A bare Python that forks fresh processes for every program, and ends them.

Started by `session` with `BOOT`, an empty environment and a socket as standard input. It never
reads a program or a test: those are sent to its children directly, so that no child inherits what
another one received.
Protocol on the socket:

    to the caller    {"filter": bool, "files": bool}: which confinement works here
    from the caller  b"L" (cases, or tests of literals) or b"S" (tests with code), a byte for the
                     candidate's CPU seconds, and three sockets: the checker's to the caller, both
                     ends of the link between checker and candidate
                     b"X", a byte without meaning, and one socket: the executor's to the caller
    from the caller  b"E": end them; b"K": the checker too, which has not finished
    to the caller    how each of them ended

Every program has a candidate process of its own. For b"L" one checker is kept for many programs,
where system calls are filtered: a candidate then cannot start processes, so that none has to be
searched for.
"""

import builtins
import gc
import importlib
import json
import os
import shutil
import signal
import site
import socket
import sys
import time
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.gym.sandbox import candidate, checker, executor, wire
from tasks.gym.sandbox.calls import CallFilter, Calls
from tasks.gym.sandbox.confinement import (
    ResourceLimits,
    apply_limits,
    become_subreaper,
    die_with_parent,
    restrict_files,
)

BOOT = (
    "import os, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "register, os.register_at_fork = os.register_at_fork, lambda **_: None; "
    "from tasks.gym.sandbox.zygote import main, preload; preload(); "
    "os.register_at_fork = register; del register, sys.path[0]; main()"
)
"""What the interpreter runs. Arguments: folder of the project, `Config` as JSON.

Modules cannot register code to run at every fork, which would take half of a child's start: it
draws a new random state, which the children set themselves, and resets threads, of which there are
none.
"""

PRELOADED = (
    *("array", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime"),
    *("decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "queue"),
    *("operator", "random", "re", "statistics", "string", "struct", "textwrap", "time", "typing"),
    "unicodedata",
)
"""Modules that programs use often, imported once instead of once per program."""
_REAP_S = 5.0
_WARM_UP_CALLS = 20
_SOURCE = "def f(x, y=()):\n    return [x, y, {1: 'a'}]"
_TEST = "assert f(1, (2.5, True)) == [1, (2.5, True), {1: 'a'}]"


@dataclass(frozen=True, slots=True)
class Config:
    """What the caller sets at the start."""

    confined: bool
    """By Landlock and system call filters, as far as the machine supports them."""
    memory_bytes: int
    readable: list[str]
    """Files and folders that programs and compilers may read."""
    work: str
    """The only folder that a compiler may write to; emptied after every program."""
    removes_work: bool
    """If the caller is killed, nothing else removes that folder."""


def main() -> None:
    """Serve the caller until it closes the socket."""
    config = Config(**json.loads(sys.argv[1]))
    control = socket.socket(fileno=os.dup(0))
    _redirect_standard_streams()
    if config.removes_work:
        _remove_work_at_exit(control, Path(config.work))
    become_subreaper()
    filters = {calls: CallFilter(calls) for calls in (Calls.FUNCTIONS, Calls.CHECKER)}
    is_filtered = filters[Calls.FUNCTIONS].works
    # Plain processes can escape from their group; /proc, where they are found, must stay visible.
    files = config.confined and restrict_files(
        [Path(path) for path in config.readable], [Path(config.work)]
    )
    wire.send(control, {"filter": is_filtered, "files": files})
    # Frozen, so that no collection in a child writes to the pages that it shares with this process.
    gc.collect()
    gc.freeze()
    forker = _Forker(config, filters if config.confined and is_filtered else {})
    while True:
        message, sockets, _, _ = socket.recv_fds(control, 2, 3)
        if len(message) != 2:
            return
        forker.start(message[:1], message[1], sockets)
        answer = control.recv(1)
        statuses, is_clean = forker.end(kept_too=answer == b"K")
        _clear(Path(config.work))
        if not answer or not is_clean:
            return  # in a namespace, all remaining processes end with this one
        wire.send(control, statuses)


def preload() -> None:
    """Import what programs use often, and run what every child does.

    What is imported, cached and specialised here is shared; a child would need its own copy.
    """
    for name in PRELOADED:
        importlib.import_module(name)
    site.setquit()
    site.sethelper()
    # The starter of a LeetCode task says List[int] and imports nothing. Builtins, not names of the
    # program: a function of such a name is still missing if the program does not define it.
    for name in typing.__all__:
        if name[0].isupper():
            setattr(builtins, name, getattr(typing, name))
    call = {"call": 0, "args": {"list": [1, {"tuple": [2.5, True]}]}, "kwargs": {"dict": []}}
    one = candidate.CandidateProgram()
    for request in ({"load": _SOURCE}, {"lookup": "f"}, *[call] * _WARM_UP_CALLS):
        one.answer(request)
    tests = [_TEST] * _WARM_UP_CALLS
    for is_literal in (False, True):
        parent, checker_parent = socket.socketpair()
        link, candidate_link = socket.socketpair()
        # Not a thread: its reserved memory would count against the limit of every child.
        child = os.fork()
        if not child:
            candidate.serve(candidate_link)
        task = {"source": _SOURCE, "setup": "", "tests": tests, "literal": is_literal}
        with parent, checker_parent, link, candidate_link:
            wire.send(parent, {**task, "fail_fast": False})
            checker.serve(checker_parent, link, child)
            link.shutdown(socket.SHUT_RDWR)
        os.waitpid(child, 0)


def _remove_work_at_exit(control: socket.socket, work: Path) -> None:
    """Continue in a child; this process waits for its end and removes the work folder.

    The zygote itself cannot: it may not write to the folder above.
    """
    zygote = os.fork()
    if zygote:
        control.close()
        os.waitpid(zygote, 0)
        shutil.rmtree(work, ignore_errors=True)
        os._exit(0)
    die_with_parent()


class _Forker:
    """Forks the processes of one program and ends them; keeps one checker for many programs.

    Args:
        filters: system calls by kind of process; empty where they are not filtered.
    """

    def __init__(self, config: Config, filters: dict[Calls, CallFilter]) -> None:
        self._config, self._filters = config, filters
        self._children: dict[str, int] = {}
        self._kept: tuple[int, socket.socket] | None = None

    def start(self, message: bytes, cpu_s: int, sockets: list[int]) -> None:
        """Start the processes that a message of the caller asks for."""
        memory = self._config.memory_bytes
        limits = ResourceLimits(2 * cpu_s, 2 * memory)
        if message == b"X" and len(sockets) == 1:
            self._children["executor"] = self._fork(sockets, self._serve_executor)
        elif message in (b"L", b"S") and len(sockets) == 3:
            tested = self._fork(
                sockets[2:], lambda one: candidate.serve(one[0]), ResourceLimits(cpu_s, memory)
            )
            self._children["candidate"] = tested
            if message == b"L" and self._filters:
                self._check_in_kept(sockets[:2], tested, limits)
            else:
                self._children["checker"] = self._fork(
                    sockets[:2], lambda pair: checker.serve(pair[0], pair[1], tested), limits
                )
        else:
            raise wire.WireError(f"unknown message {message!r}")
        for handle in sockets:
            os.close(handle)

    def end(self, *, kept_too: bool) -> tuple[dict[str, dict[str, float]], bool]:
        """End the program's processes; return how, and whether nothing can be left of them."""
        statuses = {"checker": {"signal": 0, "cpu_s": 0.0}}
        statuses |= {name: _end(child) for name, child in self._children.items()}
        may_leave = not self._filters or "executor" in self._children
        self._children.clear()
        if self._kept is not None and (may_leave or kept_too):
            process, link = self._kept
            self._kept = None
            link.close()
            # Its CPU time is that of many programs.
            statuses["checker"] = {**_end(process), "cpu_s": 0.0}
        return statuses, not may_leave or _reap()

    def _check_in_kept(self, handles: list[int], tested: int, limits: ResourceLimits) -> None:
        if self._kept is None:
            link, theirs = socket.socketpair()
            process = self._fork(
                [theirs.fileno()],
                lambda one: checker.serve_many(one[0]),
                replace(limits, cpu_s=None),
                Calls.CHECKER,
            )
            theirs.close()
            self._kept = process, link
        message = bytes([limits.cpu_s or 0]) + tested.to_bytes(4, "big")
        socket.send_fds(self._kept[1], [message], handles)

    def _fork(
        self,
        handles: list[int],
        serve: Callable[[list[socket.socket]], None],
        limits: ResourceLimits | None = None,
        calls: Calls = Calls.FUNCTIONS,
    ) -> int:
        """Fork a process that serves sockets and keeps nothing else open; return its id."""
        process = os.fork()
        if process:
            return process
        try:
            # A group of its own: what the program starts is killed with it.
            os.setsid()
            die_with_parent()
            _close_all_but(handles)
            sockets = [socket.socket(fileno=handle) for handle in handles]
            if limits is not None:
                apply_limits(limits)
                if self._filters and not self._filters[calls].install():
                    os._exit(1)
            serve(sockets)
        finally:
            # Whatever was raised: a child must not go on in the loop of its parent.
            os._exit(0)

    def _serve_executor(self, sockets: list[socket.socket]) -> None:
        filtered = self._config.confined and CallFilter(Calls.PROGRAM).works
        executor.serve(sockets[0], Path(self._config.work), filtered=filtered)


def _end(process: int) -> dict[str, float]:
    """Kill a child with its group, reap it, and say how it ended."""
    # Both: a child that was forked just now has no group of its own yet.
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
    """Kill and reap all descendants of this process; False if one cannot be found."""
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
    """Return this process's children where /proc is readable, the only place they can escape."""
    try:
        own = os.getpid()
        return [int(one) for one in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _redirect_standard_streams() -> None:
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
