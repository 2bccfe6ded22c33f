"""What a job writes down about its steps, and where it kills itself.

A point is a step and a file operation: 0 = as soon as the responses of the step are scored, k =
before the k-th time after that that a file of the job's state is opened for writing, or a file or
folder of it renamed. Python reports these operations to audit hooks; files that C++ or Rust opens
(of TRL's checkpoint the weights, of both jobs torch's files) are written between two of them.
"""

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tasks.platform.command_line import run

STEPS, PROMPTS, SAMPLES, TOKENS = 4, 4, 4, 24
"""Of the job: one optimizer update per step."""
QUESTIONS = 64
SEED = 0
STATE = "state"
"""Folder of a job below its own, from which it goes on."""
LOG = "steps.jsonl"
AuditHook = Callable[[str, tuple[object, ...]], None]


@dataclass(frozen=True, slots=True)
class Step:
    """The responses of one step."""

    step: int
    """From 0."""
    prompts: tuple[str, ...]
    responses: str
    """Digest of their texts."""
    operations: int
    """On files of the state since the process started."""
    time: float
    """Seconds since the epoch."""


class Progress:
    """Writes a line for every step; ends the process at a point."""

    def __init__(
        self,
        folder: Path,
        kill: tuple[int, int] | None = None,
        listen: Callable[[AuditHook], object] = sys.addaudithook,
    ) -> None:
        self._folder = folder
        self._kill = kill
        self._operations = 0
        self._left: int | None = None
        listen(self._count)

    def note(self, step: int, prompts: Sequence[str], texts: Sequence[str]) -> None:
        """Write down that the responses of a step are scored."""
        pairs = sorted(zip(prompts, texts, strict=True))
        line = {
            "step": step,
            "prompts": sorted(set(prompts)),
            "responses": hashlib.sha256(json.dumps(pairs).encode()).hexdigest(),
            "operations": self._operations,
            "time": time.time(),
        }
        with (self._folder / LOG).open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self._kill and self._kill[0] == step:
            self._left = self._kill[1]
            self._end_if_reached()

    def _count(self, event: str, arguments: tuple[object, ...]) -> None:
        if not changes_state(event, arguments, str(self._folder / STATE)):
            return
        self._operations += 1
        if self._left is not None:
            self._left -= 1
            self._end_if_reached()

    def _end_if_reached(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


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


def run_job(job: Callable[[Path, Progress], None]) -> None:
    """Run a job in this process, on one thread: FOLDER [STEP OPERATION]."""

    def main(arguments: Sequence[str]) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("folder", type=Path)
        parser.add_argument("--kill", type=int, nargs=2, metavar=("STEP", "OPERATION"))
        options = parser.parse_args(arguments)
        torch.set_num_threads(1)
        logging.getLogger("tasks").setLevel(logging.ERROR)
        folder: Path = options.folder.resolve()
        (folder / STATE).mkdir(parents=True, exist_ok=True)
        job(folder, Progress(folder, tuple(options.kill) if options.kill else None))

    run(main)
