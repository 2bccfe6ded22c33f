"""Compare with math-verify what our grammar cannot parse, in a worker that can be killed.

math-verify's own timeouts are disabled: they use SIGALRM, which the worker's limit needs, and hide
what they interrupt. Only LaTeX that is parsed as a whole counts, never the last number of a text.
"""

import functools
import logging
import re
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import Any

from tasks.gym.workers import WorkerPool, limited

CPU_S = 1.0
"""Most CPU seconds for one comparison, after which the worker takes the next."""
SLACK_S = 0.1
"""CPU seconds after which a worker is killed that a comparison in C does not give back."""
MAX_CHARACTERS = 300

# "\phantom{2}"
_PHANTOM = re.compile(r"\\phantom\s*(?:\{[^{}]*\})?")
# "\frac12", "\frac{1}2", "\dfrac\pi2".
_BARE_FRACTION = re.compile(
    r"(\\[dtc]?frac)\s*(\\[A-Za-z]+|\w|\{[^{}]*\})\s*(\\[A-Za-z]+|\w|\{[^{}]*\})"
)
# Ellipses, towers of powers, and numbers that exhaust memory.
_REFUSED = re.compile(r"\\[lc]?dots|\^\{?[^{}]*\^|\^\{?-?\d{4}|\d{4,}\}?\s*!|!\s*!|\d{40}")


class SymbolicResult(StrEnum):
    """The result of a comparison."""

    SAME = "same"
    DIFFERENT = "different"
    GOLD_UNREAD = "gold cannot be read"
    UNREAD = "answer cannot be read"
    OUT_OF_TIME = "out of time"


class _OutOfTime(BaseException):
    """The limit of CPU time; no `except Exception` on the way may stop it."""


def compare(gold: str, candidate: str, cpu_s: float = CPU_S) -> tuple[SymbolicResult, float]:
    """Compare two LaTeX expressions; must run in a worker's main thread.

    Args:
        gold: what the other one must be.
        candidate: the answer.
        cpu_s: CPU seconds for both; importing sympy does not count.

    Returns:
        The outcome, and the CPU seconds that it took.
    """
    import math_verify  # noqa: F401 - sympy takes a second to import, once per worker

    start, theirs = time.process_time(), list[Any]()
    try:
        with limited(cpu_s + SLACK_S), _cpu_limit(cpu_s):
            theirs = _parsed(gold)
            ours = _parsed(candidate) if theirs else []
            outcome = _verified(theirs, ours) if ours else SymbolicResult.UNREAD
    except _OutOfTime:
        outcome = SymbolicResult.OUT_OF_TIME
    return outcome if theirs else SymbolicResult.GOLD_UNREAD, time.process_time() - start


def _parsed(text: str) -> list[Any]:
    from math_verify import LatexExtractionConfig, parse  # sympy takes a second to import

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    if len(text) > MAX_CHARACTERS or _REFUSED.search(text):
        return []
    latex = LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False)
    boxed = f"$\\boxed{{{_repaired(text)}}}$"
    return parse(boxed, [latex], fallback_mode="no_fallback", parsing_timeout=0)


def _verified(gold: list[Any], candidate: list[Any]) -> SymbolicResult:
    from math_verify import verify

    equal = verify(
        gold,
        candidate,
        float_rounding=30,
        numeric_precision=50,
        allow_set_relation_comp=True,  # x in [0, 1] is 0 <= x <= 1
        timeout_seconds=0,
    )
    return SymbolicResult.SAME if equal else SymbolicResult.DIFFERENT


def _repaired(text: str) -> str:
    r"""Rewrite what math-verify misreads: \frac\pi 2, \phantom, delimiters, a final full stop."""
    text = _BARE_FRACTION.sub(_with_braces, _PHANTOM.sub("", text))
    return text.replace("$", " ").strip().rstrip(".")


def _with_braces(match: re.Match[str]) -> str:
    top, bottom = (part if part[0] == "{" else f"{{{part}}}" for part in match.groups()[1:])
    return f"{match[1]}{top}{bottom}"


@contextmanager
def _cpu_limit(seconds: float) -> Generator[None]:
    """Raise `_OutOfTime` in the block when its CPU time is used up."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def in_worker(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
    """Call a function of this module in a worker.

    Raises:
        WorkerTimeout: it did not end in time; its worker was killed.
        WorkerFailure: it raised, or its worker died.
    """
    return pool().run(function, args, timeout_s)


@functools.cache
def pool() -> WorkerPool:
    """Return the pool of this process; workers start at the first comparison."""
    return WorkerPool()


def close() -> None:
    """End the workers; the next call starts them again."""
    pool().close()
