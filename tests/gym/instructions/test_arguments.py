"""Arguments of instructions: what is read, what is refused and why."""

import operator

import pytest

from tasks.errors import DataError
from tasks.gym.instructions.arguments import RELATIONS, Kind, between, one_of, relation, whole

COUNTED = Kind(
    lambda text, arguments: len(text) >= arguments["num"], {"how": relation, "num": whole}, "long"
)


def test_numbers_may_be_written_as_floats_and_nulls_are_absent() -> None:
    read = COUNTED.read({"how": "al menos", "num": 3.0, "unused": None})

    assert {"how": operator.ge, "num": 3} == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"how": "at least"}, "num is None, needs a whole number from 0"),
        ({"how": "at least", "num": True}, "num is True, needs a whole number from 0"),
        ({"how": "at least", "num": float("inf")}, "num is inf, needs a whole number from 0"),
        ({"how": "at least", "num": float("nan")}, "num is nan, needs a whole number from 0"),
        ({"how": "about", "num": 3}, "how is 'about', needs one of at least, less than"),
        ({"how": "at least", "num": 3, "by": 1, "at": 2}, "takes no argument at, by"),
    ],
)
def test_the_message_says_what_is_needed(given: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        COUNTED.read(given)


def test_a_reader_of_few_texts_names_them() -> None:
    assert "th" == one_of("en", "th")("th")
    with pytest.raises(DataError, match="one of en, th"):
        one_of("en", "th")("vi")


@pytest.mark.parametrize("compare", sorted(set(RELATIONS.values()), key=lambda one: one.__name__))
def test_a_range_decides_if_and_only_if_all_its_numbers_agree(compare) -> None:
    for low, high, limit in [(a, b, c) for a in range(4) for b in range(a, 4) for c in range(5)]:
        answers = {compare(count, limit) for count in range(low, high + 1)}
        expected = answers.pop() if len(answers) == 1 else None

        assert expected is between(low, high, compare, limit)
