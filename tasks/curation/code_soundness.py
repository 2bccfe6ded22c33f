"""Run solutions of code problems in the sandbox that verifies responses."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from data_schemas.rows import Problem
from tasks.curation.code_inputs import new_tests, program
from tasks.errors import EngineError, JudgeError
from tasks.gym.code_tests import CodeTests, passed_tests
from tasks.gym.sandbox.runner import shared_sandbox
from tasks.gym.sandbox.session import ProgramRun
from tasks.gym.sandbox.toolchains import build
from tasks.store.files import canonical_json


def run(gold: CodeTests, source: str) -> list[bool] | None:
    """Return which tests a program passes; None if the sandbox could not run them all."""
    return passed_tests(gold, source, shared_sandbox())


def outputs(gold: CodeTests, source: str, inputs: Sequence[str]) -> list[str | None]:
    """Return what a program prints for each input; None where it fails."""
    results: list[str | None] = [None] * len(inputs)

    def keep(place: int, run: ProgramRun) -> str:
        if run.end == "done" and run.code == 0:
            results[place] = run.output
        return ""

    sandbox = shared_sandbox()
    try:
        executable = build(gold.language, program(gold, source), limits=sandbox.limits)
        sandbox.execute(executable, inputs, keep)
    except (JudgeError, EngineError):
        return [None] * len(inputs)
    return results


STAGE = "code_tests"
UNSOUND = "unsound_tests"
RUNS = 2

RunTests = Callable[[CodeTests, str], Sequence[bool] | None]
"""Which tests a program passes; None if that could not be found out."""
Outputs = Callable[[CodeTests, str, Sequence[str]], Sequence[str | None]]
"""What a solution prints for inputs, see `inputs.program`; None where it fails."""


@dataclass(frozen=True, slots=True)
class SoundnessCheck:
    """What became of the tests of one problem."""

    answer: str
    """The gold answer with the tests that are left and added."""
    fault: str = ""
    """Why the problem cannot be used; '' if it can."""
    counts: Counter[str] = field(default_factory=Counter)


def check_tests(
    problem: Problem, solutions: Sequence[str], run: RunTests, outputs: Outputs
) -> SoundnessCheck:
    """Check the tests of a problem.

    Args:
        problem: with the verifier `code_tests`; without a reference, or with a harness, it stays.
        solutions: further programs, which passed all tests once.
        run: runs tests.
        outputs: runs programs on new inputs.
    """
    gold = CodeTests.model_validate_json(problem.answer)
    if not gold.reference or gold.mode == "harness":
        return SoundnessCheck(problem.answer)
    programs = list(dict.fromkeys(one.strip() for one in (gold.reference, *solutions)))
    passed = [_results(gold, program, run) for program in programs]
    results = [one for one in passed if one is not None]
    if len(results) < len(passed):
        return SoundnessCheck(problem.answer, counts=Counter(problems_not_run=1))
    places = range(len(gold.tests or gold.cases))
    flaky = {place for place in places if any(None is each[place] for each in results)}
    failed = {place for place in places if not any(each[place] for each in results)} - flaky
    removed = flaky | failed
    counts = Counter(problems=1, flaky_tests=len(flaky), failed_tests=len(failed))
    remaining = [place for place in places if place not in removed]
    in_prompt = [
        place for place in removed if gold.tests and gold.tests[place] in problem.prompt_text
    ]
    if not remaining or in_prompt:
        detail = (
            f"of {len(places)} tests, {len(failed)} are passed by none of {len(programs)} "
            f"solutions and {len(flaky)} are flaky"
        )
        return SoundnessCheck(
            problem.answer, detail + "; the prompt shows them" * bool(in_prompt), counts
        )
    answer = _with_tests(problem.answer, remaining, [])
    sound = [
        program
        for program, each in zip(programs, results, strict=True)
        if all(each[place] for place in remaining)
    ]
    if len(sound) < 2:
        return SoundnessCheck(answer, counts=counts + Counter(problems_with_one_solution=1))
    gold = CodeTests.model_validate_json(answer)
    added = new_tests(gold, problem.id, lambda texts: [outputs(gold, one, texts) for one in sound])
    counts += Counter(problems_with_new_tests=bool(added), new_tests=len(added))
    return SoundnessCheck(_with_tests(problem.answer, remaining, added), counts=counts)


def _results(gold: CodeTests, program: str, run: RunTests) -> list[bool | None] | None:
    """Return which tests a program passes, None for a flaky one; None if they were not all run."""
    runs = [run(gold, program) for _ in range(RUNS)]
    num_tests = len(gold.tests or gold.cases)
    complete = [one for one in runs if one is not None and len(one) == num_tests]
    if len(complete) < RUNS:
        return None
    return [one if one == other else None for one, other in zip(*complete, strict=True)]


def _with_tests(answer: str, places: Sequence[int], added: Sequence[object]) -> str:
    """Return a gold answer with some of its tests and further ones; itself if nothing changes."""
    gold = json.loads(answer)
    name = "tests" if gold.get("tests") else "cases"
    tests = [*(gold[name][place] for place in places), *added]
    if tests == gold[name]:
        return answer
    return canonical_json(gold | {name: tests}).decode()
