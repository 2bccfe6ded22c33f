"""What all verifiers share: the answer part, and abstention on an unreadable gold."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.protocol import MAX_ANSWER_CHARACTERS, answer_part
from tasks.gym.table import VERIFIERS
from tests.tables import for_each


@for_each(
    ("response", "expected"),
    [
        ("26", "26"),
        ("<think>2+24</think>26", "26"),
        ("<think>a</think>25<think>b</think> 26 ", None),
        ("<think>I write </think> at the end. 25?\n</think>\n26", None),
        ("<think><think>a</think>26", None),
        ("<think>\n\n</think>\n\n26", "26"),
        ("2+24</think>26", "26"),
        ("<think>2+24 = 26", None),
        ("<think>a</think>26<think>again", None),
        ("<think>a</think>", None),
        ("<think>a</think> \n", None),
        ("", None),
    ],
)
def test_the_answer_follows_the_only_thought(response: str, expected: str | None) -> None:
    assert expected == answer_part(response)


PIECES = st.lists(st.sampled_from(["<think>", "</think>", "a", "7", " ", "\n"])).map("".join)


@given(thought=PIECES, answer=PIECES)
def test_what_is_paid_is_what_follows_the_first_end_of_a_thought(thought: str, answer: str) -> None:
    whole = f"<think>{thought}</think>{answer}"

    paid = answer_part(whole)

    assert paid is None or paid == whole.partition("</think>")[2].strip()
    assert (paid is None) == ("think>" in thought + answer or not answer.strip())


@for_each("name", sorted(VERIFIERS))
@for_each("gold", ["", "{}x", "[]", '{"unknown": 1}', "null"])
def test_an_unreadable_gold_is_an_abstention(name: str, gold: str, problem) -> None:
    verdict = VERIFIERS[name](problem(name, gold), "26")

    assert (verdict.score, verdict.reason) == (None, "bad_gold")
    assert f"test/{name}" in verdict.detail


def test_an_answer_beyond_reading_is_wrong_and_not_read(problem) -> None:
    verdict = VERIFIERS["final_answer"](
        problem("final_answer", {"value": "26"}), "26 " * MAX_ANSWER_CHARACTERS
    )

    assert (verdict.score, verdict.reason) == (0.0, "too_long")
