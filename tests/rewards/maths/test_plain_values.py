"""Numbers and words compared without algebra."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.maths.plain_values import numbers_in, quantity, same_value


@pytest.mark.parametrize(
    ("gold", "candidate"),
    [
        ("1000", "1,000"),
        ("1000", "1 000"),
        ("1000", "1{,}000"),
        ("32349", "32,\\! 349"),
        ("1000.99", "1,000.99m²"),
        ("1500000", "Rp1.500.000"),
        ("1500", "Rp 1.500"),
        ("1,22", "1.22"),
        ("18", "$18.00"),
        ("18", "18 dollars per day"),
        ("10455", "$10,455$"),
        ("26", "\uff12\uff16"),
        ("1/3", "\\frac13"),
        ("1/3", "\\dfrac{1}{3} \\text{meters}"),
        ("-10/9", "-\\frac{10}{9}"),
        ("1.1", "1\\frac{1}{10}"),
        ("3.5", "3 1/2"),
        ("0.0833333333", "1/12"),
        ("50%", "0.5"),
        ("50%", "50"),
        ("50", "50\\%"),
        ("5", "5 cm"),
        ("12", "3*4"),
        ("10", "(9+1)"),
        ("15", "12+3=15"),
        ("15", "x = 15"),
        ("A", "(A)"),
        ("yes", "Yes."),
    ],
)
def test_these_are_the_same(gold: str, candidate: str) -> None:
    assert same_value(gold, candidate) is True


@pytest.mark.parametrize(
    ("gold", "candidate"),
    [
        ("1000000", "1000001"),
        ("18", "$18.01"),
        ("5 cm", "5 m"),
        ("26", "26 26"),
        ("26", "1/0"),
        ("26", "words"),
        ("2", "2x"),
        ("2", "2i"),
        ("1", "2a + z = 1"),
        ("15", "12+3=16"),
        ("yes", "no"),
        ("26", "9" * 5000),
        ("1", "9**9**9**9"),
    ],
)
def test_these_are_not_the_same(gold: str, candidate: str) -> None:
    assert same_value(gold, candidate) is False


@pytest.mark.parametrize(
    ("gold", "candidate"), [("2x", "2"), ("x+2", "2+x"), ("2", "\\sqrt{4}"), ("[0,1)", "0\\le x<1")]
)
def test_algebra_is_left_undecided(gold: str, candidate: str) -> None:
    assert same_value(gold, candidate) is None


@given(number=st.integers(-(10**12), 10**12))
def test_separators_currency_and_case_of_digits_do_not_matter(number: int) -> None:
    for written in (f"{number:,}", f"${number}$", f"{number}.00", f"  {number} apples."):
        assert same_value(str(number), written) is True


@given(top=st.integers(-999, 999), bottom=st.integers(1, 999), factor=st.integers(1, 9))
def test_a_fraction_equals_its_expansion(top: int, bottom: int, factor: int) -> None:
    found = quantity(f"\\frac{{{top * factor}}}{{{bottom * factor}}}")

    assert found is not None
    assert Fraction(top, bottom) == found.value


@given(a=st.integers(0, 10**6), b=st.integers(0, 10**6))
def test_different_integers_are_different(a: int, b: int) -> None:
    assert (a == b) == same_value(str(a), str(b))


def test_the_numbers_of_a_sentence_are_found_as_written() -> None:
    assert ["16", "3", "1,000.5", "1/2"] == numbers_in("16 eggs less 3, or 1,000.5 and 1/2.")
