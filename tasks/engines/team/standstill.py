"""Whether any rank computes, and takes a step, while a command runs; no torch.distributed here.

A process whose main thread waits forever, in a collective that another rank does not enter, for a
lock or for a disk, still gives its pulse. What shows it is that no rank of the team, nor a process
that it started, uses a CPU or a disk.

A kernel that never ends, and a wait for a GPU, which polls, use a CPU. What shows them is that the
calls in which the main thread of every rank is stay the same, and no process that it started
computes, as a compiler does. A loop in Python that never ends is not seen by that; the others wait
for its rank in a collective, whose timeout applies.
"""

import sys
import threading
from pathlib import Path
from types import FrameType

STILL_LOOKS = 50
"""A team that computes nothing for so many looks has failed; a stopped rank is named before."""
STEP_LOOKS = 600
"""The same for a team that computes and takes no step: as long as a collective may take."""
_TASKS = str(Path(__file__).parents[2])


class Standstill:
    """How often what all ranks count was seen unchanged while work was expected."""

    def __init__(self) -> None:
        self._before: tuple[int, ...] = ()
        self._looks = 0

    def reached(self, counts: tuple[int, ...], *, expected: bool, looks: int) -> bool:
        """Compare with the last look; True after so many that were the same."""
        self._looks = self._looks + 1 if expected and counts == self._before else 0
        self._before = counts
        return self._looks >= looks


def calls() -> tuple[tuple[int, int], ...]:
    """The calls in which the main thread is: another tuple after any step of it."""
    stack, frame = [], _innermost()
    while frame is not None:
        stack.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(stack)


def place() -> str:
    """Where the main thread is: its innermost call, and the innermost one of this project."""
    frame = _innermost()
    innermost = frame
    while frame is not None and not frame.f_code.co_filename.startswith(_TASKS):
        frame = frame.f_back
    ours = "" if frame is None or frame is innermost else f", called by {_line(frame)}"
    return f"{_line(innermost)}{ours}" if innermost else "an unknown place"


def _innermost() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _line(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"
