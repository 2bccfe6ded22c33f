"""Share of unit tests a program passes (CompassMax: pass rate).

Gold: {"mode": "asserts", "tests": ["assert f(1)==2"], "setup": ""}. The program is the last fenced
block of the answer, or all of it; the setup runs after it has loaded, as MBPP defines it.

A program that hangs or dies ends its run: the tests after that count as failed, which is the one
early stop that leaves the pass rate well defined.
"""

import ast
import re
from typing import Literal

from pydantic import Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import EngineError
from tasks.rewards.protocol import Gold, judge
from tasks.rewards.sandbox.runner import Outcome, shared_sandbox

MAX_PROGRAM_CHARACTERS = 50_000
_FENCE = re.compile(r"```[ \t]*(?:python3?|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_REASONS = {"done": "tests_failed", "load": "not_loaded", "gone": "crashed", "timeout": "timeout"}


class CodeTests(Gold):
    """The tests a program has to pass."""

    mode: Literal["asserts"] = "asserts"
    tests: tuple[str, ...] = Field(min_length=1, strict=False)
    setup: str = ""


def verify(problem: Problem, response: str) -> Verdict:
    """Score the share of tests passed; abstain if the sandbox or the tests are at fault."""
    return judge(problem, response, CodeTests, _check)


def program(answer: str) -> str:
    """Return the last fenced block, or the whole answer if there is none."""
    blocks = _FENCE.findall(answer)
    return blocks[-1] if blocks else answer


def _check(gold: CodeTests, answer: str) -> Verdict:
    for text in (gold.setup, *gold.tests):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            return abstain("bad_gold", f"test {text[:60]!r}: {error}")
    source = program(answer)
    if len(source) > MAX_PROGRAM_CHARACTERS:
        return scored(0.0, "too_long", f"{len(source)} characters")
    try:
        outcome = shared_sandbox().run(source, gold.tests, gold.setup)
    except EngineError as error:
        return abstain("sandbox_failed", str(error))
    return _verdict(outcome, len(gold.tests))


def _verdict(outcome: Outcome, num_tests: int) -> Verdict:
    if outcome.end == "unsupported":
        return abstain("unsupported_test", outcome.why)
    passed = sum(outcome.passed)
    detail = f"{passed} of {num_tests} passed; {outcome.why}".removesuffix("; ")
    if outcome.end == "done" and passed == num_tests == len(outcome.passed):
        return scored(1.0, "correct", detail)
    # Short of 1 even if the program died after the last test: it did not finish in order.
    return scored(min(passed, num_tests - 1) / num_tests, _REASONS[outcome.end], detail)


def close() -> None:
    """End the sandbox's processes; the next program starts them again."""
    shared_sandbox().close()
