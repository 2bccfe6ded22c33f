"""The caller's side of one zygote: starts it, sends it programs, reads results.

A failure of the sandbox raises; a failure of the program is a result.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from tasks.errors import EngineError
from tasks.gym.sandbox import bubblewrap, toolchains, wire, zygote
from tasks.gym.sandbox.budget import Budget, UsageMonitor
from tasks.gym.sandbox.confinement import ResourceLimits
from tasks.gym.sandbox.executor import RunOptions
from tasks.gym.sandbox.levels import Level, work_mib
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.toolchains import Build, Language

_ROOT = Path(__file__).parents[3]
_START_S = 120.0
"""For a zygote to start, or to end a program, on a loaded machine."""
_MIB = 2**20
_STOPPED = {
    "idle": {"end": "timeout", "why": "slept without computing"},
    "spent": {"end": "timeout", "why": "time limit of all runs exceeded"},
    "starved": {"end": "starved", "why": "the machine did not give it enough CPU time"},
}


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How the unit tests or calls of one program went."""

    passed: tuple[bool, ...]
    """One per test that was decided; tests after a hang or crash are missing."""
    end: str
    """'done', 'not_loaded', 'crashed' (its process ended), 'timeout', 'starved' (too little CPU
    time from the machine), or 'unsupported' (a test needs what the sandbox does not support)."""
    why: str
    """The first failure."""
    cpu_s: float
    is_ready: bool
    """True if it loaded and the tests' setup ran."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The result of one run of a program on one input."""

    end: str
    """'done', 'timeout', 'starved' or 'output' (too much output)."""
    code: int
    cpu_s: float
    output: str


@dataclass(frozen=True, slots=True)
class Runs:
    """The results of a program on several inputs."""

    passed: tuple[bool, ...]
    """One per run; inputs after an early stop are missing."""
    end: str
    """'done', 'not_compiled', or how the first failed run ended."""
    why: str
    """The first failure."""


class Session:
    """One zygote process and the socket to it; one program at a time."""

    def __init__(self, limits: Limits, level: Level) -> None:
        self._level = level
        self._control, theirs = socket.socketpair()
        self._control.settimeout(_START_S)
        is_wrapped = level is Level.BUBBLEWRAP
        self._folder = (
            None if is_wrapped else tempfile.mkdtemp(prefix=f"eachprompt-sandbox-{os.getpid()}-")
        )
        config = zygote.Config(
            confined=level is not Level.PLAIN,
            memory_bytes=limits.memory_mib * _MIB,
            readable=toolchains.readable_paths(),
            work=self._folder or bubblewrap.WORK,
            removes_work=not is_wrapped,
        )
        wrapper = bubblewrap.bubblewrap(work_mib()) if is_wrapped else ()
        command = [*toolchains.python_command(), "-c", zygote.BOOT, str(_ROOT)]
        try:
            self.process = subprocess.Popen(
                [*wrapper, *command, json.dumps(asdict(config))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # Read only if it does not start: then it redirects its streams, and the pipe cannot
                # fill.
                stderr=subprocess.PIPE,
                cwd="/",
                # With a fixed hash seed the order of sets, and the verdict, are reproducible.
                env={"PYTHONHASHSEED": "0"},
                # Ctrl-C in a terminal is for this process, which then ends the sandbox itself.
                start_new_session=True,
            )
        finally:
            theirs.close()
        try:
            hello = wire.receive(self._control)
        except (wire.WireError, TimeoutError) as error:
            self.process.kill()
            _, stderr = self.process.communicate()
            self.close()
            raise EngineError(f"the sandbox did not start: {stderr.decode()[-300:]}") from error
        if level is Level.KERNEL and not (hello["filter"] and hello["files"]):
            self.close()
            raise EngineError(f"the sandbox does not reach level {level!s}: {hello}")

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    def check(self, task: Mapping[str, object], budget: Budget) -> ProgramOutcome:
        """Load one program and run its tests or calls.

        Args:
            task: request to `checker`; without code if it has "function" or "literal" is true.
        """
        mine, checker_parent = socket.socketpair()
        checker_link, candidate_link = socket.socketpair()
        monitor = UsageMonitor(self.process.pid, budget)
        kind = b"L" if "function" in task or task["literal"] else b"S"
        with mine:
            with checker_parent, checker_link, candidate_link:
                ends = [end.fileno() for end in (checker_parent, checker_link, candidate_link)]
                socket.send_fds(self._control, [kind + bytes([budget.limits.cpu_s])], ends)
            reports, last = _reports(mine, task, monitor, budget)
        status = self._end(kept_too="cpu_s" not in last)
        used_s = float(status["candidate"]["cpu_s"]) + float(status["checker"]["cpu_s"])
        used_s = max(used_s, last.get("cpu_s", 0.0))
        within = list(takewhile(lambda report: budget.covers(report["cpu_s"]), reports))
        if len(within) < len(reports) or not budget.covers(last.get("cpu_s") or used_s):
            reports, last = within, _STOPPED["spent"]
        monitor.charge(used_s)
        end, why = str(last["end"]), str(last.get("why", ""))
        died_of = {int(status[name]["signal"]) for name in ("candidate", "checker")}
        if end in ("crashed", "checker_ended") and signal.SIGXCPU in died_of:
            end = "timeout"
        if end == "checker_ended":
            raise wire.WireError(f"the checker ended: {status['checker']}")
        passed = [report for report in reports if "passed" in report]
        first = next((report for report in passed if not report["passed"]), None)
        return ProgramOutcome(
            passed=tuple(bool(report["passed"]) for report in passed),
            end=end,
            why=str(first["why"]) if first and not why else why,
            cpu_s=used_s,
            is_ready=len(reports) > 0,
        )

    def execute(
        self,
        build: Build,
        inputs: Sequence[str],
        find_fault: Callable[[int, ProgramRun], str],
        budget: Budget,
        *,
        fail_fast: bool,
    ) -> Runs:
        """Compile one program and run it on inputs.

        Args:
            find_fault: returns why a run failed, given its index; empty if it passed.
            fail_fast: stop at the first failure.
        """
        mine, theirs = socket.socketpair()
        with mine:
            with theirs:
                socket.send_fds(self._control, [b"X\0"], [theirs.fileno()])
            result = self._runs(mine, build, inputs, find_fault, budget, fail_fast=fail_fast)
        self._end()
        return result

    def close(self) -> None:
        """End the process and remove its folder."""
        self._control.close()
        try:  # it ends, with its children, when the socket closes
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, *, kept_too: bool = False) -> dict[str, dict[str, float]]:
        self._control.sendall(b"K" if kept_too else b"E")
        return wire.receive(self._control)

    def _runs(
        self,
        link: socket.socket,
        build: Build,
        inputs: Sequence[str],
        find_fault: Callable[[int, ProgramRun], str],
        budget: Budget,
        *,
        fail_fast: bool,
    ) -> Runs:
        link.settimeout(budget.remaining_s)
        try:
            wire.send(
                link,
                executor_request(build, budget.limits, confined=self._level is not Level.PLAIN),
            )
            compiled = wire.receive(link)
        except TimeoutError:
            return Runs((), "starved", "the machine did not give the compiler enough CPU time")
        link.settimeout(_START_S)
        if not compiled["compiled"]:
            return Runs((), "not_compiled", str(compiled["why"]))
        passed, first = list[bool](), ("", "")
        for index, text in enumerate(inputs):
            if budget.is_spent:
                break
            run = self._one(link, text, budget)
            if run.end == "starved":
                return Runs(tuple(passed), "starved", f"test {index}: {_STOPPED['starved']['why']}")
            why = find_fault(index, run)
            passed.append(not why)
            if why and not first[0]:
                first = ("crashed" if run.end == "done" and run.code else run.end, why)
            if why and fail_fast:
                break
        if len(passed) < len(inputs) and not first[0]:
            first = ("timeout", f"{budget.limits.total_s:.0f} s for all runs used up")
        return Runs(tuple(passed), first[0] or "done", first[1])

    def _one(self, link: socket.socket, text: str, budget: Budget) -> ProgramRun:
        wire.send(link, {"run": True})
        wire.send_bytes(link, text.encode(errors="replace"), wire.MAX_STREAM_BYTES)
        monitor = UsageMonitor(self.process.pid, budget)
        stopped = monitor.wait(link)
        if stopped:
            wire.send(link, {"run": False})
        report = wire.receive(link)
        output = wire.receive_bytes(link, wire.MAX_STREAM_BYTES)
        used_s = float(report["cpu_s"])
        if not budget.covers(used_s):
            stopped = "spent"
        monitor.charge(used_s)
        return ProgramRun(
            end=_STOPPED[stopped]["end"] if stopped else str(report["end"]),
            code=int(report["code"]),
            cpu_s=used_s,
            output=output.decode(errors="replace"),
        )


def executor_request(build: Build, limits: Limits, *, confined: bool) -> dict[str, object]:
    """Return the request that describes one program to the executor."""
    is_java = build.language is Language.JAVA
    memory = limits.memory_mib + (limits.java_machine_mib if is_java else 0)
    # Where system calls are filtered, processes cannot be started and threads are counted.
    processes = None if confined or is_java else 0
    return {
        "files": build.files,
        "compile": build.compile,
        "run": build.run,
        "environment": build.environment,
        "compile_limits": asdict(
            ResourceLimits(
                limits.compile_cpu_s,
                limits.compile_memory_mib * _MIB,
                file_bytes=limits.compile_file_mib * _MIB,
                processes=None,
                open_files=256,
                counts_reserved=not is_java,
            )
        ),
        "compile_options": asdict(RunOptions(4_000, is_compiler=True)),
        "limits": asdict(
            ResourceLimits(
                limits.run_cpu_s,
                memory * _MIB,
                processes=processes,
                open_files=limits.open_files,
                stack_bytes=0 if is_java else limits.stack_mib * _MIB,
                counts_reserved=not is_java,
            )
        ),
        "options": asdict(RunOptions(limits.output_mib * _MIB, limits.threads)),
    }


def _reports(
    checker: socket.socket, task: object, monitor: UsageMonitor, budget: Budget
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Send the task and read one report per test, until the last one says how it ended."""
    reports: list[dict[str, Any]] = []
    try:
        checker.settimeout(budget.remaining_s)
        wire.send(checker, task)
        while True:
            stopped = monitor.wait(checker)
            if stopped:
                return reports, _STOPPED[stopped]
            checker.settimeout(budget.remaining_s)
            report = wire.receive(checker)
            if "end" in report:
                return reports, report
            reports.append(report)
    except TimeoutError:
        return reports, _STOPPED["starved"]
    except wire.WireError as error:
        return reports, {"end": "checker_ended", "why": str(error)}
