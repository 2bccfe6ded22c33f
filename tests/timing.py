"""CPU time of a call, independent of the machine's load and of the test process's heap."""

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


def timed(call: Callable[[], ResultT], enough_s: float, tries: int = 3) -> tuple[float, ResultT]:
    """Return the least CPU time of up to `tries` calls, and what the last one returned.

    Other work on the same core slows a call and never speeds it up, so the least of several is the
    call's own; the first that takes less than `enough_s` is the last. The garbage collector is
    paused: after thousands of tests a full collection walks objects that are not the call's.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        least, result = _once(call)
        while least >= enough_s and (tries := tries - 1):
            seconds, result = _once(call)
            least = min(least, seconds)
        return least, result
    finally:
        if was_enabled:
            gc.enable()


def imports_of_pydantic(call: Callable[[], ResultT], enough: float) -> tuple[float, ResultT]:
    """Return the CPU time of the processes a call starts, in processes that only import pydantic.

    A ratio of two measurements in a row, so that it holds on any machine. As in `timed`, the least
    of three counts, and the first below `enough` is the last.
    """
    ratios: list[float] = []
    while True:
        unit, _ = _in_children(_import_pydantic)
        seconds, result = _in_children(call)
        ratios.append(seconds / unit)
        if ratios[-1] < enough or len(ratios) == 3:
            return min(ratios), result


def _import_pydantic() -> None:
    subprocess.run([sys.executable, "-c", "import pydantic.main"], check=True)


def _in_children(call: Callable[[], ResultT]) -> tuple[float, ResultT]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def _once(call: Callable[[], ResultT]) -> tuple[float, ResultT]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result
