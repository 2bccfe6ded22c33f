"""What a written answer is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.maths.answer_shapes import Shape, normalised, shape, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\left( 2, \\frac{1}{2} \\right]", Shape("(]", ("2", "\\frac{1}{2}"))),
        ("\\{1, 2\\}", Shape("set", ("1", "2"))),
        ("1, 2 \\text{ and } 3", Shape("list", ("1", "2", "3"))),
        ("1 \\pm x", Shape("list", ("1 + x", "1 - x"))),
        ("(0,1) \\cup [2,3]", Shape("union", ("(0,1)", "[2,3]"))),
        ("3 : 4", Shape("ratio", ("3", "4"))),
        ("1 < x \\leq 4", Shape("(]", ("1", "4"))),
        ("4 \\geq x > 1", Shape("(]", ("1", "4"))),
        ("x \\ge 5", Shape("[)", ("5", "\\infty"))),
        ("f(x) = 2x", Shape("value", ("2x",), "f(x)")),
        ("x + y = 2", Shape("equation", ("x + y", "2"))),
        ("\\text{Odd.}", Shape("words", ("odd",))),
        ("$5.40", Shape("value", ("5.40",))),
        ("12 \\text{ km}^2", Shape("value", ("12",))),
        ("2 pi", Shape("value", ("2 pi",))),
    ],
)
def test_an_answer_is_known_by_its_outermost_signs(text: str, expected: Shape) -> None:
    assert expected == shape(normalised(text))


@given(parts=st.lists(st.sampled_from(["1", "(a,b)", "[0,1)", "\\frac{1,2}{3}"]), min_size=1))
def test_brackets_hold_their_commas(parts: list[str]) -> None:
    assert parts == split(", ".join(parts), ",")
