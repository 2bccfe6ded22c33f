"""What a written answer says."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.maths.normal_form import normalised
from tasks.gym.maths.parse import parse, split
from tests.timing import timed


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("\\left( 2, \\frac{1}{2} \\right]", "(]", ["2", "\\frac{1}{2}"]),
        ("\\{1, 2\\}", "set", ["1", "2"]),
        ("1, 2 \\text{ and } 3", "list", ["1", "2", "3"]),
        ("1, 2, and 3", "list", ["1", "2", "3"]),
        ("1 \\pm x", "list", ["1 + x", "1 - x"]),
        ("(0,1) \\cup [2,3]", "union", ["(0,1)", "[2,3]"]),
        ("3 : 4", "ratio", ["3", "4"]),
        ("1 < x \\leq 4", "(]", ["1", "4"]),
        ("4 \\geq x > 1", "(]", ["1", "4"]),
        ("x \\ge 5", "[)", ["5", "\\infty"]),
        ("> 8", "relation >", ["", "8"]),
        ("x \\neq 8", "complement", ["8"]),
        ("x + y = 2", "equation", ["x + y", "2"]),
        ("\\frac23 \\approx 0.67", "approximation", ["\\frac23", "0.67"]),
        ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "matrix 2", ["1", "2", "3", "4"]),
    ],
)
def test_an_answer_is_known_by_its_outermost_signs(text: str, kind: str, parts: list[str]) -> None:
    answer = parse(text)

    assert (kind, parts) == (answer.kind, [part.text for part in answer.parts])


@pytest.mark.parametrize(
    ("text", "kind", "unit"),
    [
        ("12 \\text{ km}^2", "value", {"kilometer^2"}),
        ("12 square kilometers", "value", {"kilometer^2"}),
        ("$5.40", "value", {"dollar"}),
        ("18 dollars per day", "value", {"dollar", "day"}),
        ("90^\\circ", "value", {"degree"}),
        ("28 pct", "value", {"%"}),
        ("2 pi", "value", set()),
        ("2x", "value", set()),
        ("8 million", "value", set()),
        ("8 or more", "list", set()),
        ("8 at most", "hedged", set()),
        ("\\text{Odd.}", "words", set()),
        ("\\text{not } 8", "unread", set()),
        ("8 (not 9)", "unread", set()),
        ("26 26", "unread", set()),
    ],
)
def test_a_number_is_read_with_its_unit(text: str, kind: str, unit: set[str]) -> None:
    answer = parse(text)

    assert (kind, unit) == (answer.kind, answer.unit)


def test_what_has_a_name_is_its_value() -> None:
    assert ("f(x)", "2x") == (parse("f(x) = 2x").name, parse("f(x) = 2x").text)
    assert ("x", "[)") == (parse("x \\in [0,1)").name, parse("x \\in [0,1)").kind)


@given(parts=st.lists(st.sampled_from(["1", "(a,b)", "[0,1)", "\\frac{1,2}{3}"]), min_size=1))
def test_brackets_hold_their_commas(parts: list[str]) -> None:
    assert parts == split(", ".join(parts), ",")


@given(
    text=st.text("\\{}()[]^_=<>≠≈,;:1a+-±√²!° $%.", max_size=60),
    language=st.sampled_from(["en", "id", "zh"]),
)
def test_any_text_is_read_without_an_error(text: str, language: str) -> None:
    assert parse(text, language) == parse(text, language)


@pytest.mark.parametrize("sign", ["$", " $", "1", "{", "\\text{"])
def test_a_long_text_of_one_sign_is_normalised_within_half_a_second(sign: str) -> None:
    # 4,000 blanks cost three nested repeats of blanks 90 CPU seconds.
    seconds, _ = timed(partial(normalised, (sign * 4000)[:4000]), 0.5)

    assert seconds < 0.5
