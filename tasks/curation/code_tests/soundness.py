"""Remove the tests of a code problem that no known solution passes; add tests on which they agree.

A problem is looked at if its source publishes a solution (`reference` of the gold). The others are
the demonstrations of the same prompt that passed all tests. Every solution runs twice: a test with
two results is flaky, and is removed. A test that the prompt shows cannot be removed alone: then the
problem is. Tests are added (`inputs`) only where two different solutions pass all that are left,
because the output of one alone would turn its own mistakes into tests.
Source: AlphaCode (arXiv 2203.07814), section 3.2.2, which mutates inputs and keeps those on which
correct solutions agree. Differs: it asks for many solutions; here two are enough.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from data_schemas.prompts import Problem
from tasks.curation.code_tests.inputs import new_tests
from tasks.gym.code_tests import CodeTests
from tasks.store.files import canonical_json

STAGE = "code_tests"
UNSOUND = "unsound_tests"
RUNS = 2

Run = Callable[[CodeTests, str], Sequence[bool] | None]
"""Which tests a program passes; None if that could not be found out."""
Outputs = Callable[[CodeTests, str, Sequence[str]], Sequence[str | None]]
"""What a solution prints for inputs, see `inputs.program`; None where it fails."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of the tests of one problem."""

    answer: str
    """The gold answer with the tests that are left and added."""
    fault: str = ""
    """Why the problem cannot be used; '' if it can."""
    counts: Counter[str] = field(default_factory=Counter)


def check_tests(problem: Problem, solutions: Sequence[str], run: Run, outputs: Outputs) -> Checked:
    """Check the tests of a problem.

    Args:
        problem: with the verifier `code_tests`; without a reference, or with a harness, it stays.
        solutions: further programs, which passed all tests once.
        run: runs tests.
        outputs: runs programs on new inputs.
    """
    gold = CodeTests.model_validate_json(problem.answer)
    if not gold.reference or gold.mode == "harness":
        return Checked(problem.answer)
    programs = list(dict.fromkeys(one.strip() for one in (gold.reference, *solutions)))
    passed = [_results(gold, program, run) for program in programs]
    found = [one for one in passed if one is not None]
    if len(found) < len(passed):
        return Checked(problem.answer, counts=Counter(problems_not_run=1))
    places = range(len(gold.tests or gold.cases))
    flaky = {place for place in places if any(None is each[place] for each in found)}
    failed = {place for place in places if not any(each[place] for each in found)} - flaky
    removed = flaky | failed
    counts = Counter(problems=1, flaky_tests=len(flaky), failed_tests=len(failed))
    left = [place for place in places if place not in removed]
    shown = [place for place in removed if gold.tests and gold.tests[place] in problem.prompt_text]
    if not left or shown:
        detail = (
            f"of {len(places)} tests, {len(failed)} are passed by none of {len(programs)} "
            f"solutions and {len(flaky)} are flaky"
        )
        return Checked(problem.answer, detail + "; the prompt shows them" * bool(shown), counts)
    answer = _with_tests(problem.answer, left, [])
    sound = [
        program
        for program, each in zip(programs, found, strict=True)
        if all(each[place] for place in left)
    ]
    if len(sound) < 2:
        return Checked(answer, counts=counts + Counter(problems_with_one_solution=1))
    gold = CodeTests.model_validate_json(answer)
    added = new_tests(gold, problem.id, lambda given: [outputs(gold, one, given) for one in sound])
    counts += Counter(problems_with_new_tests=bool(added), new_tests=len(added))
    return Checked(_with_tests(problem.answer, left, added), counts=counts)


def _results(gold: CodeTests, program: str, run: Run) -> list[bool | None] | None:
    """Return which tests a program passes, None for a flaky one; None if they were not all run."""
    runs = [run(gold, program) for _ in range(RUNS)]
    num_tests = len(gold.tests or gold.cases)
    complete = [one for one in runs if one is not None and len(one) == num_tests]
    if len(complete) < RUNS:
        return None
    return [one if one == other else None for one, other in zip(*complete, strict=True)]


def _with_tests(answer: str, left: Sequence[int], added: Sequence[object]) -> str:
    """Return a gold answer with some of its tests and further ones; itself if nothing changes."""
    gold = json.loads(answer)
    name = "tests" if gold.get("tests") else "cases"
    tests = [*(gold[name][place] for place in left), *added]
    if tests == gold[name]:
        return answer
    return canonical_json(gold | {name: tests}).decode()
