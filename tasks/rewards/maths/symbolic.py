"""Algebra that may hang, in workers that can be killed: math-verify, and sympy on terms of ours.

math-verify's own timeouts are off: they use SIGALRM, which fails in threads, and swallow what they
interrupt.
"""

import functools
import logging
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tasks.rewards.maths.latex_terms import Term, TooLarge, parse_term, symbols, to_sympy, value_of
from tasks.rewards.maths.plain_values import RELATIVE_TOLERANCE
from tasks.rewards.workers.pool import WorkerPool

_PHANTOM = re.compile(r"\\phantom\s*(?:\{[^{}]*\})?")
_BARE_FRACTION = re.compile(
    r"(\\[dtc]?frac)\s*(\\[A-Za-z]+|\w|\{[^{}]*\})\s*(\\[A-Za-z]+|\w|\{[^{}]*\})"
)
_DELIMITED = re.compile(r"\\boxed|\\\(|\\\[|\$")


def equivalent(gold: str, candidate: str) -> bool | None:
    """Compare LaTeX or plain expressions; None if the gold cannot be read."""
    from math_verify import parse, verify  # sympy takes a second to import

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    gold, candidate = _repaired(gold), _repaired(candidate)
    gold_parsed = parse(_delimited(gold), parsing_timeout=0)
    if not gold_parsed:
        return None
    candidate_parsed = parse(_delimited(candidate), parsing_timeout=0)
    return verify(
        gold_parsed,
        candidate_parsed,
        allow_set_relation_comp=True,  # x in [0, 1] is 0 <= x <= 1
        timeout_seconds=0,
    ) and not _rounded_away(gold, candidate)


def _repaired(text: str) -> str:
    r"""Rewrite what math-verify misreads: \frac\pi 2, \phantom, a final full stop."""
    text = _BARE_FRACTION.sub(_with_braces, _PHANTOM.sub("", text))
    return text.strip().rstrip(".")


def _with_braces(match: re.Match[str]) -> str:
    top, bottom = (part if part[0] == "{" else f"{{{part}}}" for part in match.groups()[1:])
    return f"{match[1]}{top}{bottom}"


def _rounded_away(gold: str, candidate: str) -> bool:
    """Say whether two small values are equal only because math-verify rounds to six decimals."""
    values: list[Fraction | complex] = []
    for text in (gold, candidate):
        term = parse_term(text)
        if term is None or symbols(term):
            return False
        try:
            values.append(value_of(term, {}))
        except (TooLarge, ArithmeticError, ValueError):
            return False
    ours, theirs = (complex(value) for value in values)
    largest = max(abs(ours), abs(theirs))
    return largest < 1.0 and abs(ours - theirs) > RELATIVE_TOLERANCE * largest


def constant(term: Term) -> bool:
    """Say whether sympy can show that a term is the same for all values of its unknowns."""
    import sympy  # takes a second

    expression = to_sympy(term)
    return any(
        not simplify(expression).free_symbols
        for simplify in (sympy.expand, sympy.cancel, sympy.simplify)
    )


def in_worker(function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float) -> Any:
    """Call a function of this module in a worker.

    Raises:
        WorkerTimeout: it did not end in time; its worker was killed.
        WorkerFailed: it raised, or its worker died.
    """
    return pool().run(function, args, timeout_s)


@functools.cache
def pool() -> WorkerPool:
    """Return the pool of this process; workers start when algebra is first needed."""
    return WorkerPool()


def close() -> None:
    """End the workers; the next call starts them again."""
    pool().close()


def _delimited(text: str) -> str:
    """Mark a bare expression as an answer, so that all of it is read and not its last number."""
    return text if _DELIMITED.search(text) else f"$\\boxed{{{text}}}$"
