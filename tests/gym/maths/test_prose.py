"""What a sentence states."""

import pytest

from tasks.gym.maths.prose import stated


@pytest.mark.parametrize(
    ("language", "sentence", "values"),
    [
        ("en", "26 per day because of 3 ducks", ("26",)),
        ("en", "that she pays 26 in 2 days", ("2",)),
        ("en", "as she has x + 3 = 10 apples", ("10 apples",)),
        ("en", "either 5 or 3", ()),
        ("en", "5 apples or maybe 3 pears", ("5", "3")),
        ("en", "between 2 and 3 of them", ()),
        ("en", "2 to 3 of the 9", ()),
        ("en", "not 8 but what", ()),
        ("en", "not 8 but rather 9", ("9",)),
        ("en", "at least 8 in all", ()),
        ("en", "more than 8 of them", ()),
        ("en", "8 is wrong", ()),
        ("en", "8 is not the answer to 1", ()),
        ("en", "27 and a half", ()),
        ("en", "anything but 48", ()),
        ("en", "AZYUK2A", ()),
        ("en", "the 5th of them", ()),
        ("en", "8 million people of 9", ("8 million",)),
        ("id", "bukan 8 tentunya", ()),
        ("vi", "không phải là 8", ()),
        ("es", "no es 8", ()),
        ("fr", "n'est pas 8", ()),
        ("de", "nicht 8 Stück", ()),
        ("pt", "não é 8", ()),
        ("th", "ไม่ใช่ 8", ()),
        ("zh", "不是8", ()),
        ("zh", "大于8", ()),
    ],
)
def test_hedges_ranges_and_denials_state_no_one_value(language, sentence, values) -> None:
    assert values == stated(sentence, language, leading=True)


def test_the_last_number_counts_where_nothing_announces_the_first() -> None:
    assert ("13",) == stated("Of 16 eggs she keeps 13.", "en", leading=False)
    assert ("1,000.99",) == stated("not it's not 10 it's 1,000.99", "en", leading=False)


@pytest.mark.parametrize(
    "sentence",
    [
        "Then subtract from the total: 20 eggs - 7 eggs = 13 eggs",
        "so much per year: $1/month * 13 months/year = $13/year",
        "either 12 or x = 13",
        "not x = 13",
        "I first thought 13 but that is wrong",
    ],
)
def test_an_equation_in_words_states_its_last_side_unless_it_is_denied(sentence: str) -> None:
    found = stated(sentence, "en", leading=False)

    assert [] == [value for value in found if "13" not in value]
    assert bool(found) == sentence.startswith(("Then", "so much"))
