"""Choices among options in seven languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.choice import fold, verify

SHOES = {
    "correct": ["Shoes", "鞋子", "sepatu", "kasut", "sapatos", "รองเท้า", "giày dép"],
    "others": [["Bags", "包包", "tas", "beg", "bolsas", "กระเป๋า", "túi xách"], ["Hats", "topi"]],
}


@pytest.mark.parametrize(
    "response",
    [
        "Shoes",
        "  sHOES.",
        "<think>Bags?</think>Shoes",
        "Bags are carried and shoes are worn. Answer: Shoes",
        "\\boxed{Shoes}",
        "答案是鞋子。",
        "這是鞋子類",
        "Jawaban: sepatu",
        "Jawapannya ialah kasut",
        "Resposta: SAPATOS",
        "คำตอบคือรองเท้าครับ",
        "Đáp án: Giày dép",
        "S\u200bhoes",
        "\uff33hoes",
        "Shoes is the answer:",
    ],
)
def test_the_right_option_is_recognised_in_every_language(problem, response: str) -> None:
    assert 1.0 == verify(problem("choice", SHOES), response).score


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("Bags", "wrong"),
        ("Horseshoes", "wrong"),
        ("shoestring", "wrong"),
        ("I cannot tell", "wrong"),
        ("Shoes or bags", "several_answers"),
        ("กระเป๋ารองเท้า", "several_answers"),
        ("Answer: shoes, bags, hats", "several_answers"),
        ("Bags\nAnswer: Shoes", "several_answers"),
        ("Answer: bags. Answer: shoes", "several_answers"),
        ("<think>Shoes", "no_answer"),
    ],
)
def test_anything_else_scores_zero(problem, response: str, reason: str) -> None:
    verdict = verify(problem("choice", SHOES), response)

    assert (0.0, reason) == (verdict.score, verdict.reason)


def test_a_competing_name_inside_the_right_one_is_no_second_answer(problem) -> None:
    gold = {"correct": ["Running Shoes"], "others": [["Shoes"]]}

    assert 1.0 == verify(problem("choice", gold), "Running shoes").score
    assert 0.0 == verify(problem("choice", gold), "Shoes").score


def test_the_right_name_inside_a_competing_one_is_not_asserted(problem) -> None:
    gold = {"correct": ["Shoes"], "others": [["Running Shoes"]]}

    assert 0.0 == verify(problem("choice", gold), "Running shoes").score


def test_a_letter_counts_only_as_the_first_word(problem) -> None:
    gold = {"correct": ["A"], "others": [["B"]]}

    assert 1.0 == verify(problem("choice", gold), "(A) because it fits").score
    assert 0.0 == verify(problem("choice", gold), "It is a shoe").score
    assert 0.0 == verify(problem("choice", gold), "A or B").score


def test_an_alias_of_nothing_but_signs_is_an_abstention(problem) -> None:
    verdict = verify(problem("choice", {"correct": ["--"]}), "Shoes")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(text) == fold(fold(text))


@given(
    before=st.sampled_from(["", " ", "\n", "«", "**"]),
    after=st.sampled_from(["", ".", " \n", "**", "!"]),
    swap=st.booleans(),
)
def test_case_space_and_signs_around_do_not_matter(problem, before, after, swap) -> None:
    name = "sHoEs" if swap else "Shoes"

    assert 1.0 == verify(problem("choice", SHOES), f"{before}{name}{after}").score


@given(tail=st.text(max_size=40))
def test_a_wrong_choice_cannot_be_repaired(problem, tail: str) -> None:
    for wrong in ("Bags\n", "**Bags**\n", "Answer: Bags "):
        response = f"{wrong}{tail} Answer: Shoes"

        assert 0.0 == verify(problem("choice", SHOES), response).score
