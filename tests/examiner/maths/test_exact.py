"""Exact values: read, written and compared without any tolerance."""

import cmath
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examiner.maths.exact import Exact, Unreadable, latex, normal, number, read

MONOMIALS = st.tuples(
    st.sampled_from([1, 2, 3, 6, 7]),
    st.sampled_from([(), (("i", 1),), (("pi", 1),), (("x", 2),), (("x", 1), ("y", 3))]),
)
VALUES = st.lists(
    st.tuples(MONOMIALS, st.fractions(max_denominator=50).map(lambda f: f % 1000)), max_size=4
).map(lambda terms: normal(tuple(terms)))


def estimate(value: Exact) -> complex:
    """What a value is worth in floating point, with fixed numbers for its letters."""
    known = {"pi": math.pi, "i": 1j, "x": 1.7, "y": -0.6}
    total = 0j
    for (radicand, powers), factor in value.terms:
        term = complex(factor) * math.sqrt(radicand)
        for name, exponent in powers:
            term *= known[name] ** exponent
        total += term
    return total


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac{1}{2}", "0.5"),
        (r"\frac12", r"\dfrac{2}{4}"),
        (r"\frac{3}{\sqrt{3}}", r"\sqrt{3}"),
        (r"\sqrt{12}", r"2\sqrt 3"),
        ("(x+1)(x-1)", "x^2-1"),
        (r"-3 + 2\sqrt{2}", r"2 \sqrt{2} - 3"),
        (r"\pi/2", r"\frac{\pi}{2}"),
        ("(1+i)^2", "2i"),
    ],
)
def test_two_spellings_of_a_value_are_one_value(one: str, other: str) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("-i", "i"), ("p-q", "p+q"), ("ab", "a+b"), ("12345678/7", "12345685/7"), ("x", "y")],
)
def test_other_values_differ(one: str, other: str) -> None:
    assert read(one) != read(other)


@pytest.mark.parametrize(
    "text",
    [r"1\frac{1}{2}", "x2", "f(x)", "2, 3", "1/2b", "5!", "Sunday", r"\frac{1}{x}", "1/0", "", "A"],
)
def test_what_may_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text)


@given(VALUES)
def test_a_written_value_is_read_again(value: Exact) -> None:
    assert value == read(latex(value))


@given(VALUES, VALUES)
def test_arithmetic_agrees_with_floating_point(a: Exact, b: Exact) -> None:
    assert cmath.isclose(estimate(a) + estimate(b), estimate(a + b), rel_tol=1e-9, abs_tol=1e-6)
    product = estimate(a) * estimate(b)
    assert cmath.isclose(product, estimate(a * b), rel_tol=1e-9, abs_tol=1e-3)


def test_a_rational_is_recognised() -> None:
    assert (Fraction(-3, 4), None) == (read("-0.75").rational, read(r"\sqrt{2}").rational)
    assert (7, None) == (number(7).integer, read("7.5").integer)
