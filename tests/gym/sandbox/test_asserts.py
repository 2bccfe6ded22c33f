"""Which tests are data, and which names tests leave to the program."""

import pytest

from tasks.gym.sandbox.asserts import LiteralTest, are_literal, names_under_test, read_literal
from tests.tables import for_each


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("assert f(1) == 2", LiteralTest("f", [1], {}, 2)),
        ("assert f([(1, 2.5)], key='a') == {3: {None}}", LiteralTest(
            "f", [[(1, 2.5)]], {"key": "a"}, {3: {None}}
        )),
        ("assert f(-1, b'x') == (1+2j)\n", LiteralTest("f", [-1, b"x"], {}, 1 + 2j)),
    ],
)  # fmt: skip
def test_a_test_of_literals_is_read_without_being_run(test: str, expected: LiteralTest) -> None:
    assert expected == read_literal(test)


@for_each(
    "test",
    [
        "assert f(g(1)) == 2",
        "assert f(1) == 1 + 1 + x",
        "assert f(1) == [x for x in (2,)]",
        "assert f(1) == __import__('os')",
        "assert f(*[1]) == 2",
        "assert f(**{'x': 1}) == 2",
        "assert f(...) == 2",
        "assert f(1) != 2",
        "assert f(1) == 2 == 2",
        "assert f(1) == 2, print(1)",
        "assert f.g(1) == 2",
        "assert f(1)(2) == 2",
        "assert 2 == f(1)",
        "assert not f(1) == 2",
        "assert f(1) == 2\nassert f(2) == 3",
        "f(1) == 2",
        "assert f({[]: 1}) == 2",
        "assert f(1) == " + "[" * 500 + "]" * 500,
        "assert sum([1]) == 2",
        "assert math(1) == 2",
        "assert f(1",
    ],
)
def test_any_other_test_is_run_as_code(test: str) -> None:
    assert read_literal(test) is None


def test_tests_are_literal_only_together_and_without_setup() -> None:
    assert are_literal(" \n", ["assert f(1) == 2", "assert g(1) == 2"])
    assert not are_literal("x = 1", ["assert f(1) == 2"])
    assert not are_literal("", ["assert f(1) == 2", "assert f(1)"])


def test_names_that_tests_define_or_python_has_are_not_tested() -> None:
    tests = ["def check(g):\n    assert len(g(1)) == 2", "check(f)", "assert math.pi > 3"]

    assert frozenset({"f"}) == names_under_test("", tests)
    assert frozenset({"sum"}) == names_under_test("", ["assert sum(1, 2) == 3"])
    assert frozenset() == names_under_test("", ["assert sum(1, 2) == abs(3)"])
