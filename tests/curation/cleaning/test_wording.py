"""What counts as one word."""

import random

from tasks.curation.cleaning.wording import ByPart, normalise, numbers, parts, words


def test_width_case_and_whitespace_do_not_matter():
    full_width = "".join(chr(ord(char) + 0xFEE0) for char in "ABC12")

    assert "abc12 5" == normalise(f"  {full_width}\t \n5 ")
    assert normalise("ABC\u00a0d") == normalise("abc d")


def test_a_number_with_its_separators_is_one_word_and_signs_are_words():
    assert ["3.50", "-", "1,000", "=", "x", "?"] == words("3.50 - 1,000 = x?")
    assert ("3.50", "1,000", "7") == numbers("3.50 - 1,000 and no7.")


def test_spaceless_scripts_are_taken_by_the_character():
    assert ["紅", "色", "背", "包", "nike", "7"] == words("紅色背包nike7")
    assert ["ร", "อ", "ง", "เ", "ท", "้", "า"] == words("รองเท้า")


def test_no_word_and_no_number_goes_across_parts():
    draws = random.Random(0)
    signs = "a\u00c9\u017fZ_17\u0e51\uff11.,-= \t\n\u00a0\u2003\u7d05\u0e23\u0e49\u0301\u00bd"
    for _ in range(500):
        text = "".join(draws.choices(signs, k=30))
        whole = normalise(text)

        assert words(whole) == [word for part in parts(text) for word in words(part)]
        assert list(numbers(whole)) == [one for part in parts(text) for one in numbers(part)]


def test_what_is_computed_of_a_part_is_remembered_unless_it_is_long():
    asked: list[str] = []
    lengths = ByPart(lambda part: asked.append(part) or len(part))

    assert [2, 40, 2, 40] == [lengths[part] for part in ("ab", "c" * 40) * 2]
    assert ["ab", "c" * 40, "c" * 40] == asked
