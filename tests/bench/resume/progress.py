"""What a job writes down about its steps, and where it kills itself.

A point is a number of events after the responses of a step were scored. Events of a step are its
computations: calls of torch modules, first of its update, then of the next step's responses. Those
of a save are file operations: a file of the job's state is opened for writing, or a file or folder
of it renamed. Python reports these to audit hooks; files that C++ or Rust opens (of TRL's
checkpoint the weights, of both jobs torch's files) are written between two of them.
"""

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from tasks.platform.command_line import run

STEPS, PROMPTS, SAMPLES, TOKENS = 4, 4, 4, 24
"""Size of the job: one optimizer update per step."""
QUESTIONS = 64
SEED = 0
STATE = "state"
"""Folder of a job below its own, from which it goes on."""
LOG = "steps.jsonl"
AuditHook = Callable[[str, tuple[object, ...]], None]
ModuleHook = Callable[[torch.nn.Module, object], None]


class Event(StrEnum):
    """What is counted."""

    COMPUTATION = "computation"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a job ends itself."""

    step: int
    event: Event
    number: int
    """From 1, after the responses of the step were scored; before it happens."""


@dataclass(frozen=True, slots=True)
class Step:
    """The responses of one step."""

    step: int
    """From 0."""
    prompts: tuple[str, ...]
    responses: str
    """Digest of their texts."""
    events: Mapping[Event, int]
    """Since the process started."""
    cpu_s: float
    """CPU seconds of the process so far, all its threads."""


class Progress:
    """Writes a line for every step; ends the process at a point."""

    def __init__(
        self,
        folder: Path,
        kill: Kill | None = None,
        listen: Callable[[AuditHook], object] = sys.addaudithook,
        listen_to_modules: Callable[[ModuleHook], object] = register_module_forward_pre_hook,
    ) -> None:
        self._folder = folder
        self._kill = kill
        self._events: Counter[Event] = Counter()
        self._last: int | None = None
        listen(self._operate)
        listen_to_modules(lambda _module, _inputs: self._count(Event.COMPUTATION))

    def note(self, step: int, prompts: Sequence[str], texts: Sequence[str]) -> None:
        """Write down that the responses of a step are scored."""
        pairs = sorted(zip(prompts, texts, strict=True))
        line = {
            "step": step,
            "prompts": sorted(set(prompts)),
            "responses": hashlib.sha256(json.dumps(pairs).encode()).hexdigest(),
            "events": {event: self._events[event] for event in Event},
            "cpu_s": time.process_time(),
        }
        with (self._folder / LOG).open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self._kill and self._kill.step == step:
            self._last = self._events[self._kill.event] + self._kill.number

    def _operate(self, event: str, arguments: tuple[object, ...]) -> None:
        if changes_state(event, arguments, str(self._folder / STATE)):
            self._count(Event.OPERATION)

    def _count(self, event: Event) -> None:
        self._events[event] += 1
        if self._kill and event is self._kill.event and self._events[event] == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


Job = Callable[[Path, Progress], None]
"""Trains in a folder, or goes on there."""


def changes_state(event: str, arguments: tuple[object, ...], state: str) -> bool:
    """Return whether an audit event opens for writing or renames something below a folder."""
    if event == "open":
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return False
    elif event == "os.rename":
        path = arguments[0]
    else:
        return False
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(f"{state}/")


def read_steps(folder: Path) -> list[Step]:
    """Read what a job wrote, in all its processes; nothing if it wrote none."""
    path = folder / LOG
    if not path.exists():
        return []
    lines = map(json.loads, path.read_text().splitlines())
    return [Step(**line | {"prompts": tuple(line["prompts"])}) for line in lines]


def run_job(job: Job) -> None:
    """Run a job that is not killed: FOLDER."""

    def main(arguments: Sequence[str]) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("folder", type=Path)
        run_here(job, parser.parse_args(arguments).folder.resolve())

    run(main)


def run_here(job: Job, folder: Path, kill: Kill | None = None) -> None:
    """Run a job in this process, on one thread."""
    torch.set_num_threads(1)
    logging.getLogger("tasks").setLevel(logging.ERROR)
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    job(folder, Progress(folder, kill))
