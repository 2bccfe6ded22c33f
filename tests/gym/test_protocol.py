"""What all verifiers share: the answer part, and abstention on an unreadable gold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.protocol import MAX_ANSWER_CHARACTERS, answer_part
from tasks.gym.table import VERIFIERS


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("26", "26"),
        ("<think>2+24</think>26", "26"),
        ("<think>a</think>25<think>b</think> 26 ", "26"),
        ("2+24</think>26", "26"),
        ("<think>2+24 = 26", None),
        ("<think>a</think>26<think>again", None),
        ("<think>a</think>", None),
        ("<think>a</think> \n", None),
        ("", None),
    ],
)
def test_the_answer_follows_the_last_closed_thinking(response: str, expected: str | None) -> None:
    assert expected == answer_part(response)


@given(thought=st.text(), answer=st.text().filter(lambda t: "<think>" not in t and t.strip()))
def test_what_is_thought_never_reaches_the_answer(thought: str, answer: str) -> None:
    tail = answer.rpartition("</think>")[2]

    expected = tail.strip() or None

    assert expected == answer_part(f"<think>{thought}</think>{answer}")


@pytest.mark.parametrize("name", sorted(VERIFIERS))
@pytest.mark.parametrize("gold", ["", "{}x", "[]", '{"unknown": 1}', "null"])
def test_an_unreadable_gold_is_an_abstention(name: str, gold: str, problem) -> None:
    verdict = VERIFIERS[name](problem(name, gold), "26")

    assert (verdict.score, verdict.reason) == (None, "bad_gold")
    assert f"test/{name}" in verdict.detail


def test_an_answer_beyond_reading_is_wrong_and_not_read(problem) -> None:
    verdict = VERIFIERS["final_answer"](
        problem("final_answer", {"value": "26"}), "26 " * MAX_ANSWER_CHARACTERS
    )

    assert (verdict.score, verdict.reason) == (0.0, "too_long")
