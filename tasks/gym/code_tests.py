"""Score the share of tests that a program in Python, C++ or Java passes.

    CompassMax: the share passed (`CodeReward.PASS_RATE`)
    Ring-lite: 1 if every test passes, else 0 (`CodeReward.ALL_TESTS`); stops at the first failure

Gold, by mode:

    {"mode": "asserts", "tests": ["assert f(1) == 2"], "setup": ""}               Python
    {"mode": "function", "function": "f", "cases": [{"args": [1], "expected": 2}]}
    {"mode": "stdio", "cases": [{"stdin": "1 2", "expected": "3"}]}
    {"mode": "harness", "harness": "int main() {...}", "cases": [{"stdin": "", "expected": ""}]}

All modes but the first accept "language": "python" (default), "cpp" or "java". A harness is a
source that is compiled together with the program, calls its functions and prints what they return:
unit tests for C++ (`main`) and Java (`class Harness`). The program is scored by the printed output,
as in `stdio`, not by an exit code that the program could set itself. `program_text` selects the
part of an answer that is the program. The setup of asserts runs after the program has loaded, as
MBPP defines it.

Every mode accepts "reference", a program that passes. If a program then exceeds the sandbox's time
limit, the reference is timed once in the same sandbox, and the limit becomes `REFERENCE_FACTOR`
times its CPU time, at least the sandbox's limit and at most `MAX_CPU_S`.

Expected values never enter the program's process. A program that hangs or crashes in one test is
restarted for the next one, so that the share covers every test. Remaining tests fail without being
run only if the program cannot be compiled or loaded, or has exceeded its time for all tests. A
test whose result comes after that time fails, whatever the result is.
"""

import functools
import math
import re
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from data_schemas.rl_settings import CodeReward
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import EngineError, JudgeError
from tasks.gym.program_text import MAX_PROGRAM_CHARACTERS, ProgramForm, find_program
from tasks.gym.protocol import Gold, verify_answer
from tasks.gym.sandbox.asserts import names_under_test
from tasks.gym.sandbox.budget import Budget
from tasks.gym.sandbox.call_drivers import call_harness, check_printed
from tasks.gym.sandbox.comparison import same_text
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.runner import Sandbox, shared_sandbox
from tasks.gym.sandbox.session import ProgramRun
from tasks.gym.sandbox.toolchains import Language, build

REFERENCE_FACTOR = 5
"""Programming contests grant two to five times the time of their own solution."""
MAX_CPU_S = 30
"""Upper limit for all tests together or for one run; slower tasks are unsuitable as a reward."""
MAX_INPUT_CHARACTERS = 4_000_000
Result = tuple[list[bool], str, str]
"""Which tests passed (missing: not run), how the first failure ended, and its cause."""
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*[(.]")
_REASONS = {
    "done": "tests_failed", "not_loaded": "not_loaded", "crashed": "crashed",
    "timeout": "timeout", "output": "too_much_output", "not_compiled": "not_compiled",
}  # fmt: skip

_NO_VERDICT = {"unsupported": "unsupported_test", "starved": "starved"}


class Case(BaseModel):
    """One function call or one input, with its expected result."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    args: tuple[Any, ...] = Field(default=(), strict=False)
    stdin: str = Field(default="", max_length=MAX_INPUT_CHARACTERS)
    expected: Any


class CodeTests(Gold):
    """The tests a program has to pass."""

    mode: Literal["asserts", "function", "stdio", "harness"] = "asserts"
    language: Language = Field(default=Language.PYTHON, strict=False)
    tests: tuple[str, ...] = Field(default=(), strict=False)
    setup: str = ""
    function: str = Field(default="", pattern=r"^([A-Za-z_]\w*\.)?[A-Za-z_]\w*$|^$")
    harness: str = ""
    reference: str = ""
    cases: tuple[Case, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _is_complete(self) -> "CodeTests":
        needed = {
            "asserts": ("tests",),
            "function": ("function", "cases"),
            "stdio": ("cases",),
            "harness": ("harness", "cases"),
        }[self.mode]
        values = {"tests": self.tests, "function": self.function}
        values |= {"cases": self.cases, "harness": self.harness}
        for name, value in values.items():
            if bool(value) != (name in needed):
                raise ValueError(f"mode {self.mode} needs {' and '.join(needed)} and no more")
        if self.mode == "asserts" and self.language is not Language.PYTHON:
            raise ValueError("asserts are Python; C++ and Java have mode harness")
        if self.mode in ("stdio", "harness") and not all(
            isinstance(case.expected, str) for case in self.cases
        ):
            raise ValueError(f"mode {self.mode} expects text")
        return self


def verify(
    problem: Problem, response: str, *, reward: CodeReward = CodeReward.PASS_RATE
) -> Verdict:
    """Score the share of tests passed, or whether all are; abstain if the program is not at fault.

    Raises:
        SettingsError: no sandbox of the required level works on this machine.
    """
    return verify_answer(
        problem,
        response,
        CodeTests,
        lambda gold, answer: _score_answer(gold, answer, reward),
    )


def close() -> None:
    """Stop the sandbox's processes; the next program starts them again."""
    shared_sandbox().close()


def score_program(
    gold: CodeTests, source: str, sandbox: Sandbox, reward: CodeReward = CodeReward.PASS_RATE
) -> Verdict:
    """Score one program in a given sandbox."""
    if len(source) > MAX_PROGRAM_CHARACTERS:
        return scored(0.0, "too_long", f"{len(source)} characters")
    fail_fast = reward is CodeReward.ALL_TESTS
    try:
        result = _run(gold, source, sandbox, Budget(sandbox.limits), fail_fast=fail_fast)
        if result[1] == "timeout" and gold.reference:
            limits = _limits_by_reference(gold, sandbox)
            if limits is None:
                return abstain("bad_gold", f"the reference does not pass within {MAX_CPU_S} CPU s")
            if limits != sandbox.limits:
                result = _run(gold, source, sandbox, Budget(limits), fail_fast=fail_fast)
    except JudgeError as error:
        return abstain("no_compiler", str(error))
    except EngineError as error:
        return abstain("sandbox_failed", str(error))
    return _verdict(*result, num_tests=len(gold.tests or gold.cases), fail_fast=fail_fast)


def passed_tests(gold: CodeTests, source: str, sandbox: Sandbox) -> list[bool] | None:
    """Return which tests a program passes; None if the sandbox could not run them all."""
    try:
        passed, end, _ = _run(gold, source, sandbox, Budget(sandbox.limits), fail_fast=False)
    except (JudgeError, EngineError):
        return None
    complete = len(passed) == len(gold.tests or gold.cases)
    return passed if complete and end not in _NO_VERDICT else None


def program_in(gold: CodeTests, answer: str) -> str:
    """Return the part of an answer that is the program.

    Raises:
        SyntaxError, ValueError: the tests cannot be parsed.
    """
    return find_program(answer, _find_form(gold))


def _score_answer(gold: CodeTests, answer: str, reward: CodeReward) -> Verdict:
    try:
        form = _find_form(gold)
    except (SyntaxError, ValueError) as error:
        return abstain("bad_gold", f"tests: {error}")
    if gold.mode == "asserts" and not form.names:
        return abstain("bad_gold", "the tests do not show which function they test")
    return score_program(gold, find_program(answer, form), shared_sandbox(), reward)


def _find_form(gold: CodeTests) -> ProgramForm:
    """Return how the program is recognised in an answer."""
    is_python = gold.language is Language.PYTHON
    match gold.mode:
        case "asserts":
            names = names_under_test(gold.setup, gold.tests)
        case "function":
            owner, _, name = gold.function.rpartition(".")
            names = frozenset({owner or name})
        case "harness":
            names = frozenset(_CALLED.findall(gold.harness)) - {"main", "Harness"}
        case "stdio":
            names = frozenset[str]() if is_python else frozenset({"main"})
    return ProgramForm(
        gold.language, names, reads_input=any(case.stdin.strip() for case in gold.cases)
    )


def _limits_by_reference(gold: CodeTests, sandbox: Sandbox) -> Limits | None:
    """Derive limits from the reference's time; None if the reference does not pass."""
    used = _reference_time(gold.model_dump_json(), sandbox)
    if used is None:
        return None
    limits, (longest_s, all_s) = sandbox.limits, used
    cpu_s = min(MAX_CPU_S, math.ceil(REFERENCE_FACTOR * longest_s))
    return replace(
        limits,
        cpu_s=max(limits.cpu_s, cpu_s),
        run_cpu_s=max(limits.run_cpu_s, cpu_s),
        total_s=max(limits.total_s, cpu_s, min(4.0 * MAX_CPU_S, REFERENCE_FACTOR * all_s)),
    )


@functools.lru_cache(maxsize=1024)
def _reference_time(answer: str, sandbox: Sandbox) -> tuple[float, float] | None:
    """Measure a gold's reference: its longest run and all runs; None if it does not pass.

    Raises:
        EngineError: the machine had no CPU time for it.
    """
    gold = CodeTests.model_validate_json(answer)
    budget = Budget(
        replace(sandbox.limits, cpu_s=MAX_CPU_S, run_cpu_s=MAX_CPU_S, total_s=4.0 * MAX_CPU_S)
    )
    passed, end, why = _run(gold, gold.reference, sandbox, budget, fail_fast=True)
    if end == "starved":
        raise EngineError(f"the reference could not be timed: {why}")
    is_right = len(passed) == len(gold.tests or gold.cases) and all(passed)
    return (budget.longest_s, budget.own_s) if is_right else None


def _run(
    gold: CodeTests, source: str, sandbox: Sandbox, budget: Budget, *, fail_fast: bool
) -> Result:
    if gold.mode == "asserts" or (gold.mode, gold.language) == ("function", Language.PYTHON):
        return _run_tests(gold, source, sandbox, budget, fail_fast)
    return _run_inputs(gold, source, sandbox, budget, fail_fast)


def _run_tests(
    gold: CodeTests, source: str, sandbox: Sandbox, budget: Budget, fail_fast: bool
) -> Result:
    """Run Python tests or calls; after a hang or crash the program is restarted."""
    passed, ended, whys = list[bool](), list[str](), list[str]()
    cases = [case.model_dump() for case in gold.cases]
    num_tests = len(gold.tests or cases)
    while len(passed) < num_tests and not budget.is_spent:
        count = len(passed)
        if gold.mode == "asserts":
            outcome = sandbox.run(
                source, gold.tests[count:], gold.setup, budget=budget, fail_fast=fail_fast
            )
        else:
            outcome = sandbox.call(
                source, gold.function, cases[count:], budget=budget, fail_fast=fail_fast
            )
        passed += outcome.passed
        whys.append(outcome.why)
        if outcome.end in _NO_VERDICT:
            return [], outcome.end, outcome.why
        if outcome.end != "done":
            ended.append(outcome.end)
            passed += [False] if outcome.is_ready else []
        if not outcome.is_ready or (fail_fast and not all(passed)):
            break
    return passed, next(iter(ended), "done"), next(filter(None, whys), "")


def _run_inputs(
    gold: CodeTests, source: str, sandbox: Sandbox, budget: Budget, fail_fast: bool
) -> Result:
    """Compile the program, run it on every input and compare the outputs in this process."""
    harness, inputs = gold.harness, [case.stdin for case in gold.cases]
    if gold.mode == "function":
        calls = [case.args for case in gold.cases]
        harness, inputs = call_harness(gold.language, source, gold.function, calls)

    def why_failed(index: int, run: ProgramRun) -> str:
        if run.end != "done" or run.code:
            return f"test {index}: {run.end}, exit code {run.code}"
        expected = gold.cases[index].expected
        if gold.mode == "function":
            return check_printed(expected, run.output)
        if same_text(expected, run.output):
            return ""
        return f"test {index}: {run.output[:60]!r} instead of {expected[:60]!r}"

    executable = build(gold.language, source, harness, limits=budget.limits)
    runs = sandbox.execute(executable, inputs, why_failed, budget=budget, fail_fast=fail_fast)
    return list(runs.passed), runs.end, runs.why


def _verdict(passed: list[bool], end: str, why: str, *, num_tests: int, fail_fast: bool) -> Verdict:
    if end in _NO_VERDICT:
        return abstain(_NO_VERDICT[end], why)
    count = sum(passed)
    detail = f"{count} of {num_tests} passed; {why}".removesuffix("; ")
    if count == num_tests:
        return scored(1.0, "correct", detail)
    return scored(0.0 if fail_fast else count / num_tests, _REASONS[end], detail)
