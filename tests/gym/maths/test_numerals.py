"""Numbers in the writing of their language."""

# ruff: noqa: RUF001 - signs that people type
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.maths import final_answer
from tasks.gym.maths.numerals import (
    COMMA_LANGUAGES,
    machine_numbers,
    plain_signs,
    spelled_beside_digits,
    spelled_out,
)
from tests.tables import for_each


@for_each(
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
        ("zh-TW", "兩百", "200"),
        ("zh-TW", "一萬二千", "12000"),
        ("zh-TW", "一千二", "1200"),
        ("zh-TW", "一千零二", "1002"),
        ("zh-TW", "廿五", "25"),
        ("zh-TW", "壹貳", "12"),
        ("zh-TW", "百分之五十", "50%"),
        ("zh-TW", "一半", "1/2"),
        ("zh-TW", "三點五", "3.5"),
        ("zh", "三分之二", "2/3"),
        ("zh", "3千", "3千"),
        ("en", "Rp18,00", "Rp18.00"),
        ("en", "Rp 1.500", "Rp 1500"),
        ("en", "€1,000", "€1000"),
        ("en", "1.500 ₫", "1500 ₫"),
    ],
)
def test_separators_follow_the_language_or_leave_no_doubt(language, written, expected) -> None:
    assert expected == machine_numbers(written, language)


@for_each(
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


@for_each(
    ("written", "expected"),
    [
        ("three", "3"),
        ("Zero.", "0"),
        ("seventy-two", "72"),
        ("Seventy two", "72"),
        ("a hundred", "100"),
        ("a hundred and five", "105"),
        ("twelve hundred", "1200"),
        ("minus seventy‐two", "-72"),
        ("negative one thousand", "-1000"),
        ("exactly seven", "7"),
        ("one thousand, six hundred", "1600"),
        ("a million and five", "1000005"),
        ("nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred "
         "and ninety-nine", "999999999"),
        ("**three**", "3"),
        ("\\text{three}", "3"),
        ("three apples", "3 apples"),
        ("twenty per cent", "20 per cent"),
    ],
)  # fmt: skip
def test_an_integer_in_english_words_is_that_integer(written: str, expected: str) -> None:
    assert expected == spelled_out(written)


@for_each(
    "written",
    [
        "",
        "hundred",
        "one two",
        "nineteen eighty-four",
        "two thousand, three",
        "two and three",
        "two to three",
        "five or three",
        "two and one",
        "a half of it",
        "twenty-third",
        "three point fifty",
        "three point",
        "vantage point five",
        "two point five hundreds",
        "three times five",
        "two dozens",
        "about seventy",
        "not three",
        "the one",
        "one of them",
        "someone",
        "third",
        "tenth",
        "one " * 50_000,
    ],
)
def test_other_words_stay_as_they_are(written: str) -> None:
    assert written == spelled_out(written)


@for_each(
    ("language", "written", "value"),
    [
        ("en", "three and a half", "7/2"),
        ("en", "two point five", "2.5"),
        ("en", "minus two point zero five metres", "-2.05 metres"),
        ("id", "dua pertiga", "2/3"),
        ("id", "sepertiga", "1/3"),
        ("ms", "tiga perempat", "3/4"),
        ("vi", "ba phần tư", "3/4"),
        ("vi", "25 phần trăm", "25 phần trăm"),
        ("th", "เศษสามส่วนสี่", "3/4"),
        ("th", "สองในสาม", "2/3"),
        ("pt", "dois terços", "2/3"),
        ("es", "tres cuartos", "3/4"),
        ("es", "3 cuartos", "3 cuartos"),
        ("fr", "trois quarts", "3/4"),
        ("de", "drei Viertel", "3/4"),
        ("tl", "dalawang-katlo", "2/3"),
        ("id", "dua setengah", "5/2"),
        ("vi", "hai rưỡi", "5/2"),
        ("th", "สองครึ่ง", "5/2"),
        ("pt", "dois e meio", "5/2"),
        ("es", "dos y medio", "5/2"),
        ("fr", "deux et demi", "5/2"),
        ("de", "zweieinhalb", "5/2"),
        ("tl", "dalawa at kalahati", "5/2"),
        ("id", "tiga per hari", "3 per hari"),
        ("id", "dua koma lima", "2,5"),
        ("ms", "dua perpuluhan lima", "2.5"),
        ("vi", "hai phẩy năm", "2,5"),
        ("th", "สองจุดห้า", "2.5"),
        ("pt", "dois vírgula cinco", "2,5"),
        ("es", "dos coma cinco", "2,5"),
        ("fr", "deux virgule cinq", "2,5"),
        ("de", "zwei Komma fünf", "2,5"),
        ("tl", "dalawa punto lima", "2.5"),
        ("en", "two thirds", "2/3"),
        ("en", "three-quarters", "3/4"),
        ("en", "two halves", "1"),
        ("en", "a fifth", "1/5"),
        ("en", "3 fifths", "3/5"),
        ("en", "7 hundredths", "7/100"),
        ("en", "3 quarters", "3 quarters"),
        ("en", "2 and a half", "5/2"),
        ("id", "setengah", "1/2"),
        ("vi", "một nửa", "1/2"),
        ("th", "ครึ่ง", "1/2"),
        ("pt-BR", "metade", "1/2"),
        ("fil", "kalahati", "1/2"),
    ],
)
def test_a_text_that_is_a_fraction_in_words_is_one(language: str, written: str, value: str) -> None:
    assert value == spelled_out(written, language)


@for_each(
    ("written", "expected"),
    [
        ("5 or six", "5 or 6"),
        ("five or 6", "5 or 6"),
        ("\\boxed{5} or seventy-two.", "\\boxed{5} or 72."),
        ("2 to three", "2 to 3"),
        ("5 for one or two of them", "5 for one or two of them"),
    ],
)
def test_a_number_in_words_beside_digits_is_their_alternative(written, expected) -> None:
    assert expected == spelled_beside_digits(written)


@given(st.integers(0, 999_999_999), st.sampled_from(["and ", ""]), st.sampled_from("- "))
def test_every_integer_below_a_billion_is_read_from_its_words(value, and_, hyphen) -> None:
    assert str(value) == spelled_out(in_words(value, and_, hyphen))


def in_words(value: int, and_: str, hyphen: str) -> str:
    """Spell an integer by division, apart from the grammar under test."""
    small = re.findall(
        r"\w+",
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen",
    )
    for unit, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= unit:
            head, rest = divmod(value, unit)
            tail = f" {and_ if rest < 100 else ''}{in_words(rest, and_, hyphen)}" if rest else ""
            return f"{in_words(head, and_, hyphen)} {name}{tail}"
    if value < 20:
        return small[value]
    names = re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety")
    tens = names[value // 10 - 2]
    return f"{tens}{hyphen}{small[value % 10]}" if value % 10 else tens


@for_each("written", [",89", "-,89", "+,5"])
@for_each("language", ["id", "pt-BR", "en", "th"])
def test_a_number_that_begins_with_a_comma_is_a_decimal(written: str, language: str) -> None:
    assert written.replace(",", "0.") == machine_numbers(written, language)


_FORMATS = "id ms th vi pt-BR zh-TW fil en es-MX es de-CH en-ID ms-BN pt-PT zh-Hant-TW fr en-ZA"


@for_each("language", _FORMATS.split())
def test_numbers_are_read_as_cldr_writes_them(language: str) -> None:
    numbers = pytest.importorskip("babel.numbers")
    locale = pytest.importorskip("babel").Locale.parse(language, sep="-")
    for value in (0.5, 12.5, 1299, 1299.5, 12345.25, 1234567, 1234567.891, -89.9, 100, 70000):
        written = numbers.format_decimal(value, locale=locale, numbering_system="latn")

        assert value == float(machine_numbers(re.sub(r"\s", " ", written), language)), written


@for_each(
    ("language", "gold", "response", "score"),
    [
        ("en", "20.5", "The answer is 20 and a half.", 1.0),
        ("en", "20.75", "The answer is 20 and three quarters.", 1.0),
        ("en", "20", "The answer is 20 and three quarters.", 0.0),
        ("zh", "20", "The answer is 20 and a half.", 0.0),
        ("id", "20", "The answer is 20 and three quarters.", 0.0),
    ],
)
def test_a_numeral_with_a_part_in_words_is_not_the_numeral(
    problem, language: str, gold: str, response: str, score: float
) -> None:
    row = problem("final_answer", {"value": gold}).model_copy(update={"language": language})

    assert score == final_answer.verify(row, response).score
