"""CPU time of a call, independent of the machine, its load and the test process's heap."""

import gc
import resource
import time
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")
SQUARES = 1_000_000
SQUARES_S = 0.06
"""What adding up the squares takes on a core of the speed that limits are meant for."""


def processes_s() -> float:
    """Return the CPU time of all processes that this one has started and seen end."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(
    call: Callable[[], ResultT],
    enough_s: float,
    tries: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, ResultT]:
    """Return the least CPU time of up to `tries` calls, and what the last one returned.

    Other work on the same core slows a call and never speeds it up, so the least of several is the
    call's own; the first that takes less than `enough_s` is the last. If none does, the least is
    put in seconds of a core that adds up the squares in `SQUARES_S`, should this one be slower; not
    where `enough_s` is 0, which is no limit. The garbage collector is paused: after thousands of
    tests a full collection walks objects that are not the call's.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        least, result = _once(call, clock)
        while least >= enough_s and (tries := tries - 1):
            seconds, result = _once(call, clock)
            least = min(least, seconds)
        if least >= enough_s > 0.0:
            squares_s, _ = _once(_add_squares, time.process_time)
            least /= max(1.0, squares_s / SQUARES_S)
        return least, result
    finally:
        if was_enabled:
            gc.enable()


def _add_squares() -> int:
    total = 0
    for number in range(SQUARES):
        total += number * number
    return total


def _once(call: Callable[[], ResultT], clock: Callable[[], float]) -> tuple[float, ResultT]:
    started = clock()
    result = call()
    return clock() - started, result
