"""Numbers in the writing of their language."""

# ruff: noqa: RUF001 - signs that people type
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.maths.numerals import COMMA_LANGUAGES, machine_numbers, plain_signs


@pytest.mark.parametrize(
    ("language", "written", "expected"),
    [
        ("en", "1,234,567.8", "1234567.8"),
        ("en", "70.000", "70.000"),
        ("en", "1 234 567", "1234567"),
        ("en", "1.234.567", "1234567"),
        ("en", "1.234,56", "1234.56"),
        ("en", "1,5", "1,5"),
        ("en", "12,34", "12,34"),
        ("en", "1,000, 2,000", "1000, 2000"),
        ("en", "100, 200", "100, 200"),
        ("en", "(1,234)", "(1,234)"),
        ("en", "(1,000, 2,000)", "(1000, 2000)"),
        ("id", "70.000", "70000"),
        ("id", "0.125", "0.125"),
        ("id", "2,5", "2.5"),
        ("id", "1.234,5", "1234.5"),
        ("id", "1,234.5", "1234.5"),
        ("vi", "70.000", "70000"),
        ("es", "1.500", "1500"),
        ("fr", "1 234,5", "1234.5"),
        ("pt-BR", "2,5", "2.5"),
        ("de", "(2,5)", "(2,5)"),
        ("de", "(2,5; 3)", "(2.5; 3)"),
        ("th", "70,000", "70000"),
        ("zh", "十八", "18"),
        ("zh", "三千零五十", "3050"),
        ("zh", "一百二十万", "1200000"),
        ("zh", "二〇二四", "2024"),
        ("en", "Rp18,00", "Rp18.00"),
        ("en", "Rp 1.500", "Rp 1500"),
        ("en", "€1,000", "€1000"),
        ("en", "1.500 ₫", "1500 ₫"),
    ],
)
def test_separators_follow_the_language_or_leave_no_doubt(language, written, expected) -> None:
    assert expected == machine_numbers(written, language)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5²", "5^{2}"),
        ("2⁻¹⁰", "2^{-10}"),
        ("x₁₂", "x_{12}"),
        ("3½", "3\\frac{1}{2}"),
        ("๑๘", "18"),
        ("１８", "18"),
        ("١٨", "18"),
        ("12 m²", "12 m^2"),
    ],
)
def test_signs_of_other_scripts_keep_their_meaning(written: str, expected: str) -> None:
    assert expected == plain_signs(written)


@given(number=st.integers(0, 10**12), language=st.sampled_from(["en", "id", "de", "th", "zh"]))
def test_grouped_numbers_are_the_number(number: int, language: str) -> None:
    written = f"{number:,}"
    if language in COMMA_LANGUAGES:
        written = written.replace(",", ".")

    assert str(number) == machine_numbers(written, language)
