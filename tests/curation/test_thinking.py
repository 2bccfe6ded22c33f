"""How much demonstrations think is counted, and too little of it refused."""

import pytest

from data_schemas.rows import Demonstration, Domain, Message, Role
from tasks.curation.thinking import Thinking, check_thinking, thinking_words
from tasks.errors import DataError
from tests.records import filled


def taught(response: str, domain: Domain = Domain.MATHS, source: str = "gsm8k") -> Demonstration:
    return filled(
        Demonstration,
        domain=domain,
        messages=(Message(role=Role.USER, content="?"),),
        response=response,
        source=source,
    )


SHORT, EMPTY = taught("<think>two words</think>4"), taught("<think></think>4", source="shop")
LONG = taught(f"<think>{'so ' * 400}</think>4", source="s1k_1_1")


@pytest.mark.parametrize(
    ("response", "words"),
    [("<think>one two\nthree</think>4", 3), ("<think> </think>4", 0), ("4 of 5", 0)],
)
def test_the_words_of_thinking_are_those_inside_the_block(response, words):
    assert words == thinking_words(response)


def test_the_report_counts_empty_blocks_by_source_and_domain():
    thinking = Thinking()
    for row in (SHORT, LONG, EMPTY, EMPTY):
        confirmed = row is SHORT
        thinking.add(row.source, row.domain, row.language, row.response, confirmed=confirmed)

    def counts(amount: int, empty: int, confirmed: int, words: int) -> dict[str, int]:
        return {
            "demonstrations": amount,
            "empty": empty,
            "confirmed": confirmed,
            "median_words": words,
            "long_words": words,
        }

    assert thinking.report() == {
        "gsm8k": {"maths": counts(1, 0, 1, 2)},
        "s1k_1_1": {"maths": counts(1, 0, 0, 400)},
        "shop": {"maths": counts(2, 2, 0, 0)},
    }
    assert thinking.languages() == {
        source: {"en": only}
        for source, domains in thinking.report().items()
        for only in domains.values()
    }


def test_long_words_are_those_that_one_in_ten_exceeds():
    thinking = Thinking()
    for amount in range(1, 21):
        response = f"<think>{'so ' * amount}</think>4"
        thinking.add("s", "maths", "vi" if amount % 2 else "th", response, confirmed=False)

    assert (10.5, 18) == tuple(
        thinking.report()["s"]["maths"][key] for key in ("median_words", "long_words")
    )
    assert {"th": 10, "vi": 10} == {
        language: one["demonstrations"] for language, one in thinking.languages()["s"].items()
    }


def test_a_long_stage_of_short_thinking_is_refused_with_what_is_there():
    with pytest.raises(DataError, match=r"think in 2 words \(median of 3, 1 with empty thinking\)"):
        check_thinking([SHORT, SHORT, EMPTY], 100, {})

    check_thinking([LONG, LONG, SHORT], 100, {})
    check_thinking([EMPTY], 0, {Domain.CODE: 1.0})


def test_a_long_stage_without_a_domain_of_its_mixture_is_refused():
    with pytest.raises(DataError, match=r"sft\.domains asks for code, science"):
        check_thinking([LONG], 100, {Domain.MATHS: 6.0, Domain.SCIENCE: 1.0, Domain.CODE: 3.0})
