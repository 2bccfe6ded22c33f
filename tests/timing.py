"""CPU time of a call, independent of the machine's load and of the test process's heap."""

import gc
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


def _once(call: Callable[[], ResultT]) -> tuple[float, ResultT]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result
