"""Kill the same small RL job in this project and in TRL at the same points, and start it again.

    python -m tests.bench.resume.command --points 6

Half of the points lie inside a step (SIGKILL before a computation of its update or of the next
responses), half where its state is saved (SIGKILL before a file operation). Then the job is started
again until it ends, and what it trained is compared with the run that was not killed. If it does
not start, its newest checkpoint is removed, as a person would, and it is started once more. The
jobs take turns. Processes that are killed or go on are forked from one that has imported their
packages; CPU seconds and memory are those of uninterrupted runs that import them.

`TRL, reloaded` also loads the checkpoint's model before the trainer does, which a mixture of
experts needs. Amounts have their ratio to ours beside them, which says more on a busy machine.
"""

import argparse
import ast
import inspect
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tasks.errors import SettingsError
from tasks.platform.command_line import positive, run
from tests.bench.resume import our_job, trl_job, trl_reload_job
from tests.bench.resume.progress import (
    STATE,
    STEPS,
    Event,
    Job,
    Kill,
    Step,
    read_steps,
    run_here,
)
from tests.bench.rl_job import InlineScorer

MODEL = "model/model.safetensors"
JOBS = {"ours": our_job, "TRL": trl_job, "TRL, reloaded": trl_reload_job}
TRAIN: Mapping[str, Job] = {
    "ours": our_job.train_phase,
    "TRL": trl_job.train_grpo,
    "TRL, reloaded": trl_reload_job.train_reloaded,
}
STDERR = "stderr"
WHOLES = 3
"""Uninterrupted runs of every job."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([one.__name__ for one in JOBS.values()] + trl_job.PACKAGES)
CODE = {
    "ours": (our_job.train_phase, InlineScorer),
    "TRL": (trl_job.train_grpo,),
    "TRL, reloaded": (trl_job.train_grpo,),
}
"""What a user writes to reach the first step, in addition to the questions and the reward."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a job is killed."""

    step: int
    event: Event
    """Computations lie inside a step, operations in its save."""
    share: float
    """Place, as a share of the step's events."""

    def kill(self, whole: Sequence[Step]) -> Kill:
        """Return where that is in a job whose uninterrupted run is given."""
        events = [whole[step].events[self.event] for step in (self.step, self.step + 1)]
        return Kill(self.step, self.event, max(1, round(self.share * (events[1] - events[0]))))


@dataclass(frozen=True, slots=True)
class Process:
    """One start of a job, to its end."""

    ended_well: bool
    scored: bool
    """It wrote down the responses of a step."""
    error: str
    """Last line of what it wrote to standard error."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A job that was not killed, in a process that imports its packages."""

    process: Process
    cpu_s: float
    """CPU seconds to its first rewards, which the load of the machine hardly changes."""
    peak_bytes: int
    same: bool
    """Its model is that of the first such run, byte for byte."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A killed job in comparison with the one that was not killed."""

    point: Point
    failed_starts: int
    ended: bool
    lost: int
    repeated: int
    """Prompts that the uninterrupted run has less often, without those of `generated_again`."""
    generated_again: int
    """Steps whose responses were generated more than once."""
    differs_from_step: int | None
    """First whose prompts or responses differ; None if there is none."""
    differs_at_byte: int | None
    """First byte of the model that differs; None if there is none."""


@dataclass
class Measured:
    """All runs of a job."""

    wholes: list[Whole]
    processes: list[Process]
    """The others."""
    resumed: list[Resumed]


def points(count: int) -> list[Point]:
    """Spread points over the steps, in turn inside a step and in its save."""
    found = []
    for number in range(count):
        event = Event.OPERATION if number % 2 else Event.COMPUTATION
        place, places = number // 2, (count + (event is Event.COMPUTATION)) // 2
        found.append(Point(place % (STEPS - 1), event, (place + 1) / places))
    return found


def compare(
    point: Point,
    whole: Sequence[Step],
    killed: Sequence[Step],
    models: tuple[bytes, bytes] | None,
    failed_starts: int = 0,
) -> Resumed:
    """Compare the steps and the models of two jobs, of which the second was killed.

    Args:
        point: where it was killed.
        whole: steps of the uninterrupted job.
        killed: steps of all starts of the other; of a repeated one the last is in the model.
        models: None if the second has not ended.
        failed_starts: after the kill.
    """
    wanted, found = ({line.step: line for line in lines} for lines in (whole, killed))
    names = [
        Counter(p for line in steps.values() for p in line.prompts) for steps in (wanted, found)
    ]
    other = [
        step
        for step in sorted(wanted.keys() | found.keys())
        if _content(wanted.get(step)) != _content(found.get(step))
    ]
    return Resumed(
        point=point,
        failed_starts=failed_starts,
        ended=models is not None,
        lost=(names[0] - names[1]).total(),
        repeated=(names[1] - names[0]).total(),
        generated_again=len(killed) - len(found),
        differs_from_step=min(other, default=None),
        differs_at_byte=first_difference(*models) if models else None,
    )


def _content(line: Step | None) -> tuple[object, ...] | None:
    return line and (line.prompts, line.responses)


def first_difference(one: bytes, other: bytes) -> int | None:
    """Return the place of the first byte that differs; None if there is none."""
    if one == other:
        return None
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def run_whole(name: str, folder: Path, first: Path) -> Whole:
    """Run a job that is not killed; `first` is the folder of the first such run.

    Raises:
        SettingsError: it fails.
    """
    folder.mkdir()
    command = [sys.executable, "-m", JOBS[name].__name__, str(folder)]
    with (folder / STDERR).open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    found = _ended(folder, process.returncode, known=0)
    if not found.ended_well:
        raise SettingsError(f"the job {name!r} failed: {found.error}")
    return Whole(
        process=found,
        cpu_s=read_steps(folder)[0].cpu_s,
        peak_bytes=used.ru_maxrss * 1024,
        same=(folder / MODEL).read_bytes() == (first / MODEL).read_bytes(),
    )


def start(name: str, folder: Path, kill: Kill | None = None) -> Process:
    """Run a job in a forked process, until it ends or kills itself at a point."""
    folder.mkdir(exist_ok=True)
    known = len(read_steps(folder))
    process = FORKS.Process(target=_run_forked, args=(TRAIN[name], folder, kill))
    process.start()
    process.join()
    assert process.exitcode is not None, "join waits without a limit"
    return _ended(folder, process.exitcode, known)


def _run_forked(job: Job, folder: Path, kill: Kill | None) -> None:
    for number, file in ((1, os.devnull), (2, folder / STDERR)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    run_here(job, folder, kill)


def _ended(folder: Path, code: int, known: int) -> Process:
    written = (folder / STDERR).read_text(errors="replace").strip()
    return Process(
        ended_well=code == 0,
        scored=len(read_steps(folder)) > known,
        error=written.rpartition("\n")[2],
    )


def remove_newest_checkpoint(folder: Path) -> bool:
    """Remove what TRL's job goes on from; False if there is none."""
    found = list((folder / STATE).glob("checkpoint-*"))
    if found:
        shutil.rmtree(max(found, key=lambda path: int(path.name.partition("-")[2])))
    return bool(found)


def resume(name: str, point: Point, folder: Path, whole: Path, into: Measured) -> None:
    """Kill a job at a point, and start it until it ends.

    Raises:
        SettingsError: the job did not reach the point.
    """
    expected = read_steps(whole)
    into.processes.append(start(name, folder, point.kill(expected)))
    if into.processes[-1].ended_well or not into.processes[-1].scored:
        raise SettingsError(f"the job {name!r} did not reach {point}: {into.processes[-1].error}")
    tries = [start(name, folder)]
    if not tries[-1].ended_well and remove_newest_checkpoint(folder):
        tries.append(start(name, folder))
    into.processes += tries
    models = None
    if tries[-1].ended_well:
        models = (whole / MODEL).read_bytes(), (folder / MODEL).read_bytes()
    failed = sum(not one.ended_well for one in tries)
    into.resumed.append(compare(point, expected, read_steps(folder), models, failed))


def measure(count: int, folder: Path) -> dict[str, Measured]:
    """Run every job several times, then kill it at every point; jobs take turns.

    Raises:
        SettingsError: an uninterrupted job fails.
    """
    found = {name: Measured([], [], []) for name in JOBS}
    for number in range(WHOLES):
        for name, into in found.items():
            into.wholes.append(run_whole(name, _whole(folder, name, number), _whole(folder, name)))
    for number, point in enumerate(points(count)):
        for place, (name, into) in enumerate(found.items()):
            resume(name, point, folder / f"{place}-{number}", _whole(folder, name), into)
    return found


def _whole(folder: Path, name: str, number: int = 0) -> Path:
    return folder / f"{list(JOBS).index(name)}-whole-{number}"


def num_lines(source: str) -> int:
    """Lines of code that are not empty and not of a docstring."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.strip()]
    texts = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return sum(
        not any(text.lineno <= number <= (text.end_lineno or number) for text in texts)
        for number in lines
    )


def table(found: Mapping[str, Measured]) -> Table:
    """One column per job; amounts with their ratio to the first."""
    rows: dict[str, Callable[[Measured], object]] = {
        "not killed: same model, byte for byte": lambda one: (
            f"{sum(w.same for w in one.wholes[1:])} of {len(one.wholes) - 1}"
        ),
        "killed inside a step": lambda one: _count_points(one, Event.COMPUTATION),
        "killed in a save": lambda one: _count_points(one, Event.OPERATION),
        "went on at the next start": lambda one: sum(
            r.ended and not r.failed_starts for r in one.resumed
        ),
        "went on without its newest checkpoint": lambda one: sum(
            r.ended and r.failed_starts > 0 for r in one.resumed
        ),
        "prompts lost": lambda one: sum(r.lost for r in one.resumed),
        "prompts repeated": lambda one: sum(r.repeated for r in one.resumed),
        "steps generated again": lambda one: sum(r.generated_again for r in one.resumed),
        "same model, byte for byte": lambda one: sum(
            r.ended and r.differs_at_byte is None for r in one.resumed
        ),
        "first step that differs": lambda one: _least(r.differs_from_step for r in one.resumed),
        "first byte that differs": lambda one: _least(r.differs_at_byte for r in one.resumed),
    }
    shown = Table(box=None)
    for title in ("", *found):
        shown.add_column(title, justify="right" if title else "left")
    for title, value in rows.items():
        shown.add_row(title, *(str(value(one)) for one in found.values()))
    seconds = [statistics.median(one.cpu_s for one in into.wholes) for into in found.values()]
    peaks = [max(one.peak_bytes for one in into.wholes) / 2**20 for into in found.values()]
    lines = [sum(num_lines(inspect.getsource(part)) for part in CODE[name]) for name in found]
    amounts = {
        "start to first rewards, CPU s": (seconds, ".1f"),
        "peak memory, MiB": (peaks, ",.0f"),
        "lines of the job": (lines, ".0f"),
    }
    for title, (values, form) in amounts.items():
        shown.add_row(title, *(f"{v:{form}} ({v / values[0]:.2f})" for v in values))
    return shown


def errors(one: Measured) -> list[str]:
    """Return why starts failed, each reason once: without the folders of paths."""
    failed = (p.error for p in one.processes if not p.scored and p.error)
    return sorted({re.sub(r"/\S*/", "", error) for error in failed})


def _count_points(one: Measured, event: Event) -> int:
    return sum(r.point.event is event for r in one.resumed)


def _least(values: Iterable[int | None]) -> object:
    return min((value for value in values if value is not None), default="none")


def main(arguments: Sequence[str]) -> None:
    """Kill, go on, compare and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.resume.command",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--points", type=positive, default=6)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.points, Path(folder))
    console = Console(highlight=False)
    console.print(table(found))
    for name, one in found.items():
        for error in errors(one):
            console.print(f"{name} did not start: {error}")


if __name__ == "__main__":
    run(main)
