"""Whether any rank computes while a command runs; torch.distributed is not used here.

A process whose main thread waits forever, in a collective that another rank does not enter, for a
lock or for a disk, still gives its pulse. What shows it is that no rank of the team, nor a process
that it started, uses a CPU or a disk. A wait for a GPU is not seen: there, the timeout of the group
applies.
"""

import sys
import threading
from pathlib import Path
from types import FrameType

STILL_LOOKS = 50
"""A team that computes nothing for so many looks has failed; a stopped rank is named before."""
_TASKS = str(Path(__file__).parents[2])


class Standstill:
    """How often the work of all ranks was seen unchanged while some was expected."""

    def __init__(self) -> None:
        self._before: tuple[int, ...] = ()
        self._looks = 0

    def reached(self, counts: tuple[int, ...], *, expected: bool) -> bool:
        """Compare with the last look."""
        self._looks = self._looks + 1 if expected and counts == self._before else 0
        self._before = counts
        return self._looks >= STILL_LOOKS


def place() -> str:
    """Where the main thread is: its innermost call, and the innermost one of this project."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost, frame = frame, frame
    while frame is not None and not frame.f_code.co_filename.startswith(_TASKS):
        frame = frame.f_back
    ours = "" if frame is None or frame is innermost else f", called by {_line(frame)}"
    return f"{_line(innermost)}{ours}" if innermost else "an unknown place"


def _line(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"
