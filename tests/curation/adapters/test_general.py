"""Chats as demonstrations: what is said last is imitated, and verified if there is an answer."""

import pytest

from data_schemas.rows import Demonstration
from tasks.curation.adapters.general import prompt_jsonl
from tasks.curation.rows import BadRow, RawRow

CHATS = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "3+4?"},
        {"role": "assistant", "content": "<think>3+4=7</think>7"},
    ],
    "conversations": [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "3+4?"},
        {
            "from": "gpt",
            "value": "<|begin_of_thought|>3+4=7<|end_of_thought|><|begin_of_solution|>7",
        },
    ],
    "reasoning_content": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "3+4?"},
        {"role": "assistant", "content": "7", "reasoning_content": "3+4=7"},
    ],
}


@pytest.mark.parametrize("layout", CHATS)
def test_the_last_turn_of_a_chat_is_the_response_and_its_answer_verifies_it(layout):
    column = "conversations" if layout == "conversations" else "messages"
    row = {"domain": "maths", "language": "en", column: CHATS[layout]}
    verified = {"verifier": "final_answer", "answer": {"value": "7"}}

    (shown,) = prompt_jsonl(RawRow("1", "0" * 64, row))
    problem, with_answer = prompt_jsonl(RawRow("1", "0" * 64, row | verified))

    assert isinstance(shown.record, Demonstration)
    assert "<think>3+4=7</think>7" == shown.record.response
    assert ["Be brief.", "3+4?"] == [message.content for message in shown.record.messages]
    assert shown.answers is None
    assert problem.record == with_answer.answers


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        (["3+4?"], "a turn is str, not an object"),
        ([{"role": "critic", "content": "3+4?"}], "Input should be 'system', 'user'"),
        ("[", "Expecting value"),
        ([{}], "Field required"),
        ([{"from": "human"}], "Input should be a valid string"),
    ],
)
def test_a_chat_of_another_form_is_refused(turns, message):
    row = {"domain": "maths", "language": "en", "messages": turns, "response": "7"}

    with pytest.raises((BadRow, ValueError)) as refused:
        prompt_jsonl(RawRow("1", "0" * 64, row))

    found = refused.value.detail if isinstance(refused.value, BadRow) else str(refused.value)
    assert message in found


@pytest.mark.parametrize(
    "pair", [("response1", "response2"), ("output_1", "output_2"), ("chosen", "rejected")]
)
def test_a_comparison_of_answers_is_refused_with_what_it_trains(pair):
    row = {"prompt": "Sell this lamp.", "domain": "open_text", "language": "en"}

    with pytest.raises(BadRow, match="train a judge: eachprompt judge --files"):
        prompt_jsonl(RawRow("1", "0" * 64, row | dict.fromkeys(pair, "A lamp.")))
