"""Terms: what is read, what it is worth, what sympy makes of it."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.maths.latex_terms import TooLarge, parse_term, symbols, value_of
from tests.tables import for_each


@for_each(
    ("text", "value"),
    [
        ("2\\frac{1}{4}", Fraction(9, 4)),
        ("\\frac12", Fraction(1, 2)),
        ("\\frac {40}7", Fraction(40, 7)),
        ("-2^2", Fraction(-4)),
        ("2^{-1}", Fraction(1, 2)),
        ("2\\cdot 3(1+1)", Fraction(12)),
        ("5!", Fraction(120)),
        ("\\binom{5}{2}", Fraction(10)),
        ("|-3|", Fraction(3)),
        ("\\lfloor 7/2\\rfloor", Fraction(3)),
        ("\\sqrt[3]{8}", 2.0),
        ("sqrt(4)", 2.0),
        ("2pi", 2 * math.pi),
        ("\\log_{2} 8", 3.0),
        ("\\cos^2 \\pi", 1.0),
        ("e^{i\\pi}", -1.0),
    ],
)
def test_constants_have_their_value(text: str, value: Fraction | float) -> None:
    term = parse_term(text)

    assert term is not None
    assert not symbols(term)
    assert value == pytest.approx(complex(value_of(term, {}))) or value == value_of(term, {})


@for_each("text", ["", "2*", "(1", "1)", "\\ldots", "a,b", "\\text{x}", "x" * 301])
def test_what_is_not_of_the_grammar_is_not_read(text: str) -> None:
    assert parse_term(text) is None


def test_unknowns_are_named_with_their_subscript() -> None:
    term = parse_term("a_{12}b+\\theta x_1")

    assert term is not None
    assert {"a_12", "b", "\\theta", "x_1"} == symbols(term)


@pytest.mark.parametrize("text", ["9^{9^{9^9}}", "e^{9^{9}}", "(9^{9999})^{9999}"])
def test_a_value_beyond_all_answers_is_refused(text: str) -> None:
    term = parse_term(text)

    assert term is not None
    with pytest.raises(TooLarge):
        value_of(term, {})


@given(a=st.integers(-20, 20), b=st.integers(1, 20), c=st.integers(0, 4))
def test_arithmetic_agrees_with_python(a: int, b: int, c: int) -> None:
    term = parse_term(f"{a}/{b} - ({c}+{a})^{c} * {b}")

    assert term is not None
    assert Fraction(a, b) - Fraction(c + a) ** c * b == value_of(term, {})
