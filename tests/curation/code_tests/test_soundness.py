"""What becomes of tests, given what solutions make of them."""

import json
from collections import Counter

import pytest

from tasks.curation import code_inputs, code_soundness
from tasks.curation.code_soundness import check_tests

ADD, ALSO = "def f(a, b): return a + b", "def f(a, b): return b + a"
TESTS = ("assert f(1, 2) == 3", "assert f(2, 2) == 4", "assert f(3, 3) == 7")


@pytest.fixture
def coded(make_problem):
    def build(*tests, reference=ADD, prompt="Add two numbers."):
        gold = {"mode": "asserts", "reference": reference, "setup": "", "tests": tests}
        answer = json.dumps(gold, separators=(",", ":"), sort_keys=True)
        return make_problem("a", prompt, verifier="code_tests", answer=answer).record

    return build


class Runs:
    """Results of programs, run by run."""

    def __init__(self, results):
        self.left = {program: iter(found) for program, found in results.items()}

    def __call__(self, gold, program):
        return next(self.left[program])


def nothing(gold, program, given):
    return [None] * len(given)


def left_in(checked):
    return tuple(json.loads(checked.answer)["tests"])


def test_a_test_that_no_solution_passes_is_removed(coded):
    problem = coded(*TESTS)
    runs = Runs({ADD: [[True, False, False]] * 2, ALSO: [[True, True, False]] * 2})

    checked = check_tests(problem, [ALSO], runs, nothing)

    assert (TESTS[:2], "") == (left_in(checked), checked.fault)
    assert Counter(problems=1, failed_tests=1, problems_with_one_solution=1) == checked.counts


def test_a_flaky_test_is_removed(coded):
    runs = Runs({ADD: [[True, True, True], [True, False, True]]})

    checked = check_tests(coded(*TESTS), [], runs, nothing)

    assert (TESTS[0], TESTS[2]) == left_in(checked)
    assert 1 == checked.counts["flaky_tests"]


def test_a_problem_without_a_sound_test_cannot_be_used(coded):
    checked = check_tests(coded(*TESTS), [], Runs({ADD: [[False] * 3] * 2}), nothing)

    assert "of 3 tests, 3 are passed by none of 1 solutions and 0 are flaky" == checked.fault


def test_a_prompt_is_not_left_with_a_test_that_nobody_passes(coded):
    problem = coded(*TESTS, prompt=f"Your code must pass: {TESTS[2]}")

    checked = check_tests(problem, [], Runs({ADD: [[True, True, False]] * 2}), nothing)

    assert checked.fault.endswith("; the prompt shows them")


@pytest.mark.parametrize("second", [None, [True]])
def test_what_could_not_be_run_says_nothing_about_the_tests(coded, second):
    problem = coded(*TESTS)

    checked = check_tests(problem, [], Runs({ADD: [[False] * 3, second]}), nothing)

    assert (problem.answer, "") == (checked.answer, checked.fault)
    assert Counter(problems_not_run=1) == checked.counts


def test_problems_without_a_reference_stay(coded):
    problem = coded(*TESTS, reference="")

    assert problem.answer == check_tests(problem, [ADD], Runs({}), nothing).answer


def test_the_same_solution_twice_is_one(coded):
    runs = Runs({ADD: [[True] * 3] * 2})

    assert (
        1
        == check_tests(coded(*TESTS), [f"{ADD}\n"], runs, nothing).counts[
            "problems_with_one_solution"
        ]
    )


def test_solutions_that_agree_in_the_sandbox_add_tests(coded, monkeypatch):
    monkeypatch.setattr(code_inputs, "MAX_TRIED", 3)
    tests = ("assert f(1, 2) == 3", "assert f(20, 30) == 50", "assert f(2, 2) == 5")

    checked = check_tests(coded(*tests), [ALSO], code_soundness.run, code_soundness.outputs)

    found = left_in(checked)
    assert tests[:2] == found[:2]
    assert 3 <= len(found)
    assert all(eval(test.removeprefix("assert "), {"f": lambda a, b: a + b}) for test in found)
    assert (1, 1, len(found) - 2) == tuple(
        checked.counts[name] for name in ("failed_tests", "problems_with_new_tests", "new_tests")
    )
