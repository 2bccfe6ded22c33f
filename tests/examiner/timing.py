"""One verdict and the CPU time it took: what runs in a worker, which imports no model library.

A worker cannot find what the module that is run as a program defines.
"""

import json
import logging
import time

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.gym.protocol import Verifier


def math_verify(problem: Problem, response: str) -> Verdict:
    """Parse and compare without time limits: the usual reward function."""
    from math_verify import parse, verify  # sympy takes a second to import

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that it has no limits
    value = json.loads(problem.answer)["value"]
    marked = "$" in value or "\\boxed" in value
    gold = parse(value if marked else f"${value}$", parsing_timeout=0)
    said = parse(response, parsing_timeout=0)
    return scored(float(bool(verify(gold, said, timeout_seconds=0))), "math_verify")


def timed_verdict(verify: Verifier, problem: Problem, response: str) -> tuple[Verdict, float]:
    """Score in this process and return the CPU seconds that it took."""
    start = time.process_time()
    verdict = verify(problem, response)
    return verdict, time.process_time() - start


def warm_verdict(verify: Verifier, problem: Problem, response: str) -> tuple[Verdict, float]:
    """Score in this process, which has sympy, and return the CPU seconds that it took."""
    import math_verify  # noqa: F401 - imports sympy

    return timed_verdict(verify, problem, response)
