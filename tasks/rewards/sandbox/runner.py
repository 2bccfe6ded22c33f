"""Starts zygotes, hands them programs, collects what the judges report.

Under bubblewrap if it is installed, else as plain confined processes; what is lost then is logged
once. A program that hangs, dies or lies gets an outcome that says so; only a failure of the sandbox
itself raises.
"""

import atexit
import functools
import logging
import os
import queue
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import EngineError
from tasks.rewards.sandbox import candidate, confinement, judge, wire, zygote

_LOG = logging.getLogger(__name__)
_ROOT = Path(__file__).parents[3]
_MODULES = (candidate, confinement, judge, wire, zygote)
# Like -I -S (no user site, no script folder, no site-packages), but PYTHONHASHSEED is read.
_INTERPRETER = (sys.executable, "-s", "-S", "-P", "-B", "-c")
_SIGXCPU = 24


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    cpu_s: int = 2
    """HumanEval's slowest reference program takes 0.13 s."""
    wall_s: float = 20.0
    """Well above the CPU time, so that a busy machine does not make a program too slow."""
    memory_mib: int = 512


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run of one program went."""

    passed: tuple[bool, ...]
    """One per test that was decided; tests after a hang or crash are missing."""
    end: str
    """'done', 'load' (does not load), 'gone' (its process died), 'timeout', or 'unsupported' (a
    test needs what the sandbox cannot do)."""
    why: str
    """First failure, for people."""
    cpu_s: float


class Sandbox:
    """A pool of zygotes, started when needed; safe to use from several threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._owner = os.getpid()
        self._idle: queue.LifoQueue[_Zygote] = queue.LifoQueue()
        self._all: list[_Zygote] = []
        atexit.register(self.close)

    def run(self, source: str, tests: Sequence[str], setup: str = "") -> Outcome:
        """Load a program and run tests against it; nothing of it is left when this returns.

        Raises:
            EngineError: the sandbox failed twice.
        """
        task = {"source": source, "setup": setup, "tests": list(tests)}
        for attempt in (1, 2):
            process = self._take()
            try:
                outcome = process.run(task, self._limits)
            except (wire.WireError, OSError) as error:
                self._drop(process)
                _LOG.warning("sandbox process failed (attempt %s): %s", attempt, error)
                failure = error
            else:
                self._idle.put(process)
                return outcome
        raise EngineError(f"the sandbox failed twice: {failure}") from failure

    def close(self) -> None:
        """End all zygotes; a later run starts new ones."""
        if self._owner != os.getpid():
            return
        while self._all:
            self._all.pop().close()
        self._idle = queue.LifoQueue()

    def _take(self) -> "_Zygote":
        if self._owner != os.getpid():  # a forked child must not talk on its parent's sockets
            self._owner, self._all, self._idle = os.getpid(), [], queue.LifoQueue()
        while True:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                process = _Zygote(self._limits)
                self._all.append(process)
                return process
            if process.alive:
                return process
            self._drop(process)

    def _drop(self, process: "_Zygote") -> None:
        process.close()
        self._all.remove(process)


@functools.cache
def shared_sandbox() -> Sandbox:
    """Return the sandbox all verifiers of this process use."""
    return Sandbox()


class _Zygote:
    """One zygote process and the socket to it."""

    def __init__(self, limits: Limits) -> None:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(30.0)
        arguments = [str(_ROOT), str(limits.memory_mib * 2**20), str(limits.cpu_s)]
        command = [*_INTERPRETER, zygote.BOOT, *arguments]
        wrapper = _working_bubblewrap()
        try:
            self._process = subprocess.Popen(
                [*wrapper, *command],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                # The hash seed makes the order of sets, and so the verdict, the same every time.
                env={"PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        finally:
            theirs.close()
        try:
            hello = wire.receive(self._control)
        except (wire.WireError, TimeoutError) as error:
            self._process.kill()
            _, said = self._process.communicate()
            self.close()
            raise EngineError(f"the sandbox did not start: {said.decode()[-300:]}") from error
        _warn_once(bool(wrapper), bool(hello["filter"]), bool(hello["files"]))

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def run(self, task: object, limits: Limits) -> Outcome:
        """Run one program."""
        mine, judge_parent = socket.socketpair()
        judge_link, candidate_link = socket.socketpair()
        with mine:
            with judge_parent, judge_link, candidate_link:
                ends = [end.fileno() for end in (judge_parent, judge_link, candidate_link)]
                socket.send_fds(self._control, [b"S"], ends)
            passed, last = _reports(mine, task, time.monotonic() + limits.wall_s)
        self._control.sendall(b"E")
        status = wire.receive(self._control)
        end, why = str(last["end"]), str(last.get("why", ""))
        if end == "gone" and status["candidate"]["signal"] == _SIGXCPU:
            end = "timeout"
        if end == "lost":
            if status["candidate"]["signal"] != _SIGXCPU:
                raise wire.WireError(f"the judge ended: {status['judge']}")
            end = "timeout"
        first = next((report for report in passed if not report["passed"]), None)
        return Outcome(
            passed=tuple(bool(report["passed"]) for report in passed),
            end=end,
            why=str(first["why"]) if first and not why else why,
            cpu_s=float(status["candidate"]["cpu_s"]),
        )

    def close(self) -> None:
        """End the process and reap it."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _reports(
    judge: socket.socket, task: object, deadline: float
) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Send the task and read one report per test until the judge says how it ended."""
    passed: list[dict[str, object]] = []
    try:
        judge.settimeout(max(0.01, deadline - time.monotonic()))
        wire.send(judge, task)
        while True:
            judge.settimeout(max(0.01, deadline - time.monotonic()))
            report = wire.receive(judge)
            if "end" in report:
                return passed, report
            passed.append(report)
    except TimeoutError:
        return passed, {"end": "timeout"}
    except wire.WireError as error:
        return passed, {"end": "lost", "why": str(error)}


@functools.cache
def _working_bubblewrap() -> tuple[str, ...]:
    """Return the bubblewrap prefix; empty if it is not installed or not allowed here."""
    command = shutil.which("bwrap")
    if command is None:
        return ()
    here = Path(__file__).parent
    sources = [folder / "__init__.py" for folder in (here, here.parent, here.parents[1])]
    sources += [Path(str(module.__file__)) for module in _MODULES]
    python = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}
    prefix = [command, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in ("/usr", "/lib", "/lib64", "/bin"):
        prefix += ["--ro-bind-try", path, path]
    for path in (*sorted(python), *sources):
        prefix += ["--ro-bind", str(path), str(path)]
    prefix += ["--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "--"]
    trial = subprocess.run([*prefix, *_INTERPRETER, ""], capture_output=True, env={})
    if trial.returncode:
        _LOG.warning("bubblewrap does not work here: %s", trial.stderr.decode()[-200:].strip())
        return ()
    return tuple(prefix)


@functools.cache
def _warn_once(wrapped: bool, filtered: bool, hidden: bool) -> None:
    lost = [
        *([] if wrapped else ["namespaces of its own (install bubblewrap)"]),
        *([] if hidden or wrapped else ["the host's files are readable (needs Landlock)"]),
        *(
            []
            if filtered
            else ["system calls are not filtered: programs can fork, signal, connect"]
        ),
    ]
    if lost:
        _LOG.warning("sandbox without %s", "; ".join(lost))
