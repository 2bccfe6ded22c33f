"""Where a chain is killed or stopped: in which stage, before which operation or after what time.

Operations are those that Python reports to audit hooks: a file is opened for writing, renamed,
linked or removed, a folder is made or removed. Points in time lie anywhere: inside a commit of
SQLite, a computation, or the write of a library.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType

_STAGES = f"{os.sep}tasks{os.sep}stages{os.sep}"
_CHANGES = frozenset(
    {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MANY = ("sft", "rl", "evaluate")
"""Tasks that run more than once in a chain."""
BEFORE = "opening"
"""What happens before the first stage has a name."""
MIN_OPERATIONS = 2
"""A stage with fewer is no place for a point."""


class Harm(StrEnum):
    """What is done to the process."""

    KILL = "kill"
    STOP = "stop"
    """It is stopped, and goes on after a while."""
    STOP_KILL = "stop, then kill"
    """It is stopped, and never goes on: a machine that hangs until it is switched off."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of one chain."""

    stage: str
    harm: Harm
    timed: bool
    """After a time, not before an operation."""
    share: float
    """Place, as a share of the stage's operations, or of its time."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Operations and seconds of a stage that nobody disturbs."""

    operations: int
    seconds: float


def draw(extents: Mapping[str, Extent], chain: int, seed: int) -> list[Point]:
    """Draw the points of a chain: in each stage it is stopped, then killed.

    Args:
        extents: by stage, in the order in which they ran.
        chain: its number; kinds of points take turns over the chains.
        seed: of all draws.
    """
    dice = random.Random(f"{seed}/{chain}")
    stages = [stage for stage, one in extents.items() if one.operations >= MIN_OPERATIONS]
    points = []
    for place, stage in enumerate(stages):
        first, last = sorted((dice.random(), dice.random()))
        turn = place + chain
        points += [
            Point(stage, Harm.STOP, timed=turn % 3 == 0, share=first),
            Point(stage, (Harm.KILL, Harm.KILL, Harm.STOP_KILL)[turn % 3], turn % 2 == 1, last),
        ]
    return points


class Watch:
    """Counts operations and seconds by stage; harms its own process at points, in their order.

    A point whose stage ends without it (what was left to do is less than in the undisturbed run)
    is missed, and the next one is waited for.
    """

    def __init__(
        self,
        journal: Path,
        extents: Mapping[str, Extent],
        points: Sequence[tuple[int, Point]] = (),
        listen: Callable[[Callable[[str, tuple[object, ...]], None]], None] = sys.addaudithook,
    ) -> None:
        self._journal = journal
        self._extents = extents
        self._points = list(points)
        self._main = threading.main_thread().ident
        self._stage = BEFORE
        self._entered = time.monotonic()
        self._done = 0
        self._timer: threading.Timer | None = None
        self._is_noting = False
        self.operations: dict[str, int] = defaultdict(int)
        self.seconds: dict[str, float] = defaultdict(float)
        listen(self._see)

    def close(self) -> None:
        """Count the seconds of the last stage, and harm nobody any more."""
        self._enter(BEFORE)
        self._points.clear()

    def _see(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._is_noting or not (event in _CHANGES or _is_written(event, arguments)):
            return
        if threading.get_ident() == self._main:
            stage = _stage_of(sys._getframe(1))
            if stage and stage != self._stage:
                self._enter(stage)
        self.operations[self._stage] += 1
        self._done += 1
        if self._points:
            point = self._points[0][1]
            wanted = 1 + int(point.share * self._extents[point.stage].operations)
            if point.stage == self._stage and not point.timed and self._done >= wanted:
                self._harm(f"{event} {arguments[0]!r}")

    def _enter(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[self._stage] += now - self._entered
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._points and self._points[0][1].stage == self._stage:
            self._note("missed", "")
        self._stage, self._entered, self._done = stage, now, 0
        self._arm()

    def _arm(self) -> None:
        """Start the clock of the next point, if it is a time in this stage."""
        if not self._points or self._points[0][1].stage != self._stage:
            return
        point = self._points[0][1]
        if point.timed:
            passed_s = time.monotonic() - self._entered
            wait_s = point.share * self._extents[point.stage].seconds - passed_s
            self._timer = threading.Timer(max(0.0, wait_s), self._harm, ["time"])
            self._timer.daemon = True
            self._timer.start()

    def _harm(self, where: str) -> None:
        harm = self._note("hit", where)
        os.kill(os.getpid(), signal.SIGKILL if harm is Harm.KILL else signal.SIGSTOP)
        self._arm()

    def _note(self, what: str, where: str) -> Harm:
        """Write down that a point is over, in a file that outlives the process."""
        number, point = self._points.pop(0)
        line = {"number": number, "what": what, "where": where, **asdict(point)}
        self._is_noting = True
        handle = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, json.dumps(line).encode() + b"\n")
        os.close(handle)
        self._is_noting = False
        return point.harm


def over(journal: Path) -> list[dict[str, object]]:
    """Read which points are over, and how."""
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines()]


def _is_written(event: str, arguments: tuple[object, ...]) -> bool:
    if event != "open":
        return False
    _, _, flags = arguments
    return isinstance(flags, int) and bool(flags & _WRITING)


def _stage_of(frame: FrameType | None) -> str:
    """Name the Flyte task that a frame belongs to; '' if it is none."""
    outermost = None
    for found in _frames(frame):
        if _STAGES in found.f_code.co_filename and found.f_code.co_name != "<module>":
            outermost = found
    if outermost is None:
        return ""
    name, own = outermost.f_code.co_name, outermost.f_locals
    of = own.get("parent" if name == "sft" else "name", "") if name in _MANY else ""
    return f"{name} {of}".rstrip()


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
