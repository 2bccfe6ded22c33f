"""Inputs made of those of tests, and the tests that come of them."""

import json

import pytest

from tasks.curation.code_inputs import MAX_ADDED, MAX_TRIED, new_inputs, new_tests, program
from tasks.gym.code_tests import CodeTests


def asserts(*tests):
    return CodeTests(mode="asserts", tests=tests)


def function(name, *args):
    return CodeTests(
        mode="function", function=name, cases=[{"args": one, "expected": 0} for one in args]
    )


def stdio(*texts):
    return CodeTests(mode="stdio", cases=[{"stdin": text, "expected": "1"} for text in texts])


@pytest.mark.parametrize(
    "gold",
    [
        asserts("assert f([3, 1, 2], 'abc') == [1]", "assert f([5], 'x') == [2]"),
        function("f", [[3, 1, 2], "abc"], [[5], "x"]),
        stdio("3\n10 20 30\n", "2\n7 9\n"),
    ],
)
def test_inputs_are_new_of_the_same_form_and_the_same_for_a_key(gold):
    found = new_inputs(gold, "mbpp/1")

    assert found == new_inputs(gold, "mbpp/1")
    assert found != new_inputs(gold, "mbpp/2")
    assert 5 < len(set(found)) == len(found) <= MAX_TRIED
    if gold.mode == "stdio":
        assert {2, 3} >= {len(text.splitlines()) for text in found}
        assert not set(found) & {case.stdin for case in gold.cases}
    else:
        assert all(isinstance(eval(text), tuple) for text in found)
        assert "([3, 1, 2], 'abc')" not in found


def test_numbers_keep_their_sign():
    texts = new_inputs(function("f", [-4, 0, 7]), "a")

    assert all(a < 0 and b == 0 and c > 0 for a, b, c in map(json.loads, map(as_list, texts)))


def as_list(text):
    return f"[{text[1:-1]}]"


@pytest.mark.parametrize(
    "gold",
    [
        asserts("assert set(f(1)) == {1}"),
        asserts("assert f(1) == 1", "assert g(1) == 1"),
        asserts("assert f(x) == 1"),
        asserts("assert f(0.5) == 1"),
        asserts("assert f({1, 2}) == 1"),
        asserts("assert f(1) < 2"),
        stdio(""),
    ],
)
def test_what_is_not_a_call_with_plain_values_gives_no_inputs(gold):
    assert [] == new_inputs(gold, "a")


@pytest.mark.parametrize(
    ("gold", "test"),
    [
        (asserts("assert f((1, 2), 'a') == 3"), "assert f("),
        (function("f", [1, "a"]), {"args", "expected"}),
        (stdio("1 2\n"), {"stdin", "expected"}),
    ],
)
def test_tests_are_added_where_the_solutions_agree(gold, test):
    added = new_tests(gold, "a", lambda inputs: [["\n3"] * len(inputs)] * 2)

    assert 0 < len(added) <= MAX_ADDED
    for one in added:
        if isinstance(test, str):
            assert one.startswith(test)
            assert one.endswith("== 3")
        else:
            assert test == set(one)
    name = "tests" if gold.mode == "asserts" else "cases"
    extended = gold.model_dump(mode="json", exclude_defaults=True) | {name: added}
    assert len(added) == len(getattr(CodeTests.model_validate(extended), name))


@pytest.mark.parametrize(
    "printed",
    [("3", "4"), ("3", None), ("3", "3.0"), ("True", "1"), ("0.1", "0.1"), ("f", "f"), ("", "")],
)
def test_no_test_is_added_where_they_do_not(printed):
    gold = function("f", [1, 2])

    assert [] == new_tests(gold, "a", lambda inputs: [[one] * len(inputs) for one in printed])


def test_a_result_that_json_has_not_is_no_case():
    assert [] == new_tests(function("f", [1]), "a", lambda inputs: [["(1, 2)"] * len(inputs)] * 2)


def test_a_method_is_called_on_an_object_of_its_class():
    assert "Solution().f(*" in program(function("Solution.f", [1]), "class Solution: ...")
