"""The process that compiles a program once and runs it once per input, inside the sandbox.

It receives inputs but no expected outputs; the caller compares the output of the program.
Protocol on the socket, requests from the caller:

    {"files", "compile", "run", ...}, once   -> {"compiled": bool, "why": str}
    {"run": true}, then b"input"             -> {"end", "code", "cpu_s"}, then b"output"
    {"run": false}                           ends the current run, if there is one

`end` is 'done', 'timeout' (CPU time), 'stopped' (by the caller) or 'output' (too much output).
`cpu_s` includes this process.
Standard library only.
"""

import math
import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.gym.sandbox.calls import CallFilter, Calls
from tasks.gym.sandbox.confinement import ResourceLimits, apply_limits, die_with_parent
from tasks.gym.sandbox.threads import ThreadLimit
from tasks.gym.sandbox.wire import (
    MAX_STREAM_BYTES,
    WireError,
    receive,
    receive_bytes,
    send,
    send_bytes,
)

_LINK = 3
"""Descriptor of a new process's socket to the executor, until it becomes the command."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one process may print and start."""

    output_bytes: int
    threads: int = 0
    """Threads that a program may start where its system calls are filtered; not for compilers."""
    is_compiler: bool = False
    """Standard error is output, and too much output is cut off."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How one process ended, and its output."""

    end: str
    code: int
    """Exit code; negative: the signal that ended the process."""
    cpu_s: float
    output: bytes


def serve(link: socket.socket, work: Path, *, filtered: bool) -> None:
    """Compile and run one program until the caller closes the socket."""
    request = receive(link)
    for name, text in request["files"].items():
        (work / name).write_text(text, encoding="utf-8", errors="replace")
    os.chdir(work)
    environment = {**request["environment"], "TMPDIR": str(work)}
    if request["compile"]:
        result = run_process(
            request["compile"],
            environment,
            ResourceLimits(**request["compile_limits"]),
            RunOptions(**request["compile_options"]),
            link,
            calls=Calls.COMPILER if filtered else None,
        )
        if result.end != "done" or result.code != 0:
            why = result.output.decode(errors="replace").strip() or f"{result.end} {result.code}"
            send(link, {"compiled": False, "why": why[:500]})
            return
    send(link, {"compiled": True, "why": ""})
    limits, options = ResourceLimits(**request["limits"]), RunOptions(**request["options"])
    while True:
        before_s = time.process_time()
        try:
            if not receive(link)["run"]:
                continue  # the run ended before it was stopped
            payload = receive_bytes(link, MAX_STREAM_BYTES)
        except WireError:
            return
        calls = Calls.PROGRAM if filtered else None
        result = run_process(
            request["run"], environment, limits, options, link, payload=payload, calls=calls
        )
        cpu_s = result.cpu_s + time.process_time() - before_s
        send(link, {"end": result.end, "code": result.code, "cpu_s": cpu_s})
        send_bytes(link, result.output, MAX_STREAM_BYTES)


def run_process(
    command: Sequence[str],
    environment: dict[str, str],
    limits: ResourceLimits,
    options: RunOptions,
    link: socket.socket,
    *,
    payload: bytes = b"",
    calls: Calls | None = None,
) -> ProcessResult:
    """Run one command under its limits, kill it with its group, and return what it printed.

    Args:
        link: any message on it ends the run.
    """
    reading, writing = os.pipe()
    mine, theirs = socket.socketpair()
    with tempfile.TemporaryFile(dir=".") as stdin:
        stdin.write(payload)
        stdin.seek(0)
        process = os.fork()
        if not process:
            streams = (
                stdin.fileno(),
                writing,
                writing if options.is_compiler else None,
                theirs.fileno(),
            )
            _become(command, environment, limits, calls, streams)
    os.close(writing)
    theirs.close()
    listeners = list[int]()
    try:
        _, listeners, _, _ = socket.recv_fds(mine, 1, 1)
        threads = ThreadLimit(listeners[0], options.threads) if listeners else None
        streams = _Streams(reading, link, threads)
        output, end = _collect(process, streams, options)
    finally:
        mine.close()
        for handle in (reading, *listeners):
            os.close(handle)
        for kill in (os.killpg, os.kill):
            try:
                kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        _, status, usage = os.wait4(process, 0)
    cpu_s = usage.ru_utime + usage.ru_stime
    code, limit_s = os.waitstatus_to_exitcode(status), limits.cpu_s or math.inf
    if end == "done" and code in (-signal.SIGXCPU, -signal.SIGKILL) and cpu_s > limit_s - 0.5:
        end = "timeout"
    return ProcessResult(end, code, cpu_s, output)


class _Streams:
    """Descriptors that the executor waits on while a process runs."""

    def __init__(self, output: int, link: socket.socket, threads: ThreadLimit | None) -> None:
        self.output, self._link, self._threads = output, link, threads
        self._poll = select.poll()
        for stream in (output, link, *([threads.listener] if threads else [])):
            self._poll.register(stream, select.POLLIN)

    def next(self) -> str:
        """Wait for 'output' or 'stopped'; meanwhile answer requests for threads."""
        while True:
            events = dict(self._poll.poll())
            threads = self._threads
            event = events.get(threads.listener, 0) if threads else 0
            if threads and event and not threads.answer(event):
                self._poll.unregister(threads.listener)
            if self.output in events:
                return "output"
            if self._link.fileno() in events:
                return "stopped"

    def is_stopped(self, within_s: float) -> bool:
        """Wait up to `within_s` for the caller to end the run."""
        return bool(select.select([self._link], [], [], within_s)[0])


def _collect(process: int, streams: _Streams, options: RunOptions) -> tuple[bytes, str]:
    """Read until the process closes its output, ends, is stopped or exceeds its output."""
    parts, size = list[bytes](), 0
    while True:
        if streams.next() == "stopped":
            return b"".join(parts), "stopped"
        part = os.read(streams.output, 2**16)
        if not part:
            return b"".join(parts), _wait(process, streams)
        if size < options.output_bytes:
            parts.append(part)
        size += len(part)
        if size > options.output_bytes and not options.is_compiler:
            return b"".join(parts)[: options.output_bytes], "output"


def _wait(process: int, streams: _Streams) -> str:
    """Wait until a process that has closed its output ends."""
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if streams.is_stopped(within_s=0.001):
            return "stopped"
    return "done"


def _become(
    command: Sequence[str],
    environment: dict[str, str],
    limits: ResourceLimits,
    calls: Calls | None,
    streams: tuple[int, int, int | None, int],
) -> None:
    """Execute the command in a forked child; never return."""
    try:
        os.setsid()
        die_with_parent()
        stdin, stdout, stderr, link = streams
        null = os.open(os.devnull, os.O_WRONLY)
        for number, handle in enumerate((stdin, stdout, null if stderr is None else stderr)):
            os.dup2(handle, number)
        os.dup2(link, _LINK, inheritable=False)
        os.closerange(_LINK + 1, 1024)
        apply_limits(limits)
        if _filter(calls):
            os.execve(command[0], list(command), environment)
    except OSError as error:
        os.write(2, str(error).encode())
    finally:
        os._exit(127)


def _filter(calls: Calls | None) -> bool:
    """Install the filter; send the parent the descriptor of its notifications, if it has one."""
    if calls is None:
        return True
    if calls is Calls.PROGRAM:
        link = socket.socket(fileno=_LINK)  # before the filter, which refuses the calls for it
        listener = CallFilter(Calls.ASKING_PROGRAM).install_asking()
        if listener is not None:
            socket.send_fds(link, [b"F"], [listener])
            return True
    return CallFilter(calls).install()
