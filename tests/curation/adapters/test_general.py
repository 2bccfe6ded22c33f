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
        (
            [{"role": "critic", "content": "3+4?"}],
            "messages.0.role is 'critic'; a turn is of system, user",
        ),
        ("[", "Expecting value"),
        ([{}], "messages.0.role is None"),
        ([{"from": "human"}], "Field required"),
    ],
)
def test_a_chat_of_another_form_is_refused(turns, message):
    row = {"domain": "maths", "language": "en", "messages": turns, "response": "7"}

    with pytest.raises((BadRow, ValueError)) as refused:
        prompt_jsonl(RawRow("1", "0" * 64, row))

    found = refused.value.detail if isinstance(refused.value, BadRow) else str(refused.value)
    assert message in found


@pytest.mark.parametrize(
    "pair",
    [
        ("response1", "response2"),
        ("output_1", "output_2"),
        ("chosen", "rejected"),
        ("preferred_output", "non_preferred_output"),
    ],
)
def test_a_comparison_of_answers_is_refused_with_what_it_trains(pair):
    row = {"prompt": "Sell this lamp.", "domain": "open_text", "language": "en"}

    with pytest.raises(BadRow, match="train a judge: eachprompt judge --files"):
        prompt_jsonl(RawRow("1", "0" * 64, row | dict.fromkeys(pair, "A lamp.")))


SHOWN = {"role": "assistant", "content": "7"}


def chat(*turns: object, **columns: object) -> dict[str, object]:
    return {"domain": "maths", "language": "en", "messages": [*turns], **columns}


def read(row: dict[str, object]) -> str:
    """Return the response of a row, or the reason and detail of its refusal."""
    try:
        (item,) = prompt_jsonl(RawRow("1", "0" * 64, row))
    except BadRow as error:
        return f"{error.reason}: {error.detail}"
    return item.record.response if isinstance(item.record, Demonstration) else "no response"


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_a_thought_is_read_under_every_name_that_servers_give_it(key: str):
    details = [{"type": "reasoning.text", "text": "3+4"}, {"type": "reasoning.text", "text": "=7"}]
    user = {"role": "user", "content": "3+4?"}
    thought = "<think>3+4=7</think>7"

    assert thought == read(chat(user, SHOWN | {key: "3+4=7"}))
    assert thought == read(chat(user, SHOWN | {key: "3+4=7", "reasoning_details": details}))
    assert thought == read(chat(user, SHOWN | {"reasoning_details": details, key: None}))
    assert "two_thoughts: " in read(chat(user, SHOWN | {key: "4+3", "reasoning_details": details}))
    assert "messages.0.reasoning is not" in read(
        chat({"role": "assistant", "content": "Hi", "reasoning": "greet"}, user)
    )


@pytest.mark.parametrize(
    ("keys", "refusal"),
    [
        ({"tool_calls": [{"function": {"name": "add"}}]}, "unread_key: messages.1.tool_calls is"),
        ({"function_call": {"name": "add"}}, "unread_key: messages.1.function_call is"),
        ({"refusal": "No."}, "unread_key: messages.1.refusal is"),
        ({"weight": 0}, "not_trained: messages.1.weight is 0"),
        ({"loss": False}, "not_trained: messages.1.loss is False"),
        ({"weight": 0.5}, "unread_key: messages.1.weight is not read: it is 0.5"),
        ({"reasoning_details": [{"type": "reasoning.encrypted"}]}, "'reasoning.encrypted'"),
        ({"thinking": {"text": "3+4"}}, "unread_key: messages.1.thinking is"),
        ({"audio": {"id": "a"}}, "unread_key: messages.1.audio is"),
    ],
)
def test_what_the_last_turn_says_besides_is_refused_by_name(keys, refusal: str):
    for speaker in ({"role": "user", "content": "3+4?"}, {"from": "human", "value": "3+4?"}):
        assert refusal in read(chat(speaker, SHOWN | keys))


def test_a_key_that_says_what_is_done_anyway_changes_nothing():
    turns = [
        {"role": "user", "content": "Hi", "name": None, "loss": False, "tool_calls": []},
        {"role": "assistant", "content": "Hi!", "weight": 0},
        {"role": "user", "content": "3+4?"},
        SHOWN | {"weight": 1, "loss": True, "refusal": None, "tool_calls": None},
    ]

    assert "<think></think>7" == read(chat(*turns))
    assert "messages.1.weight is not read: the last turn alone" in read(
        chat(turns[0], turns[1] | {"weight": 1}, *turns[2:])
    )


def test_parts_of_text_are_lines_and_a_picture_is_refused_as_one():
    parts = [
        {"type": "text", "text": "3+4?", "image_url": None},
        {"type": "text", "text": "A number."},
    ]
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    row = chat({"role": "user", "content": parts}, verifier="final_answer", answer={"value": "7"})

    (item,) = prompt_jsonl(RawRow("1", "0" * 64, row))

    assert "3+4?\nA number." == item.record.messages[0].content
    assert "not_text: messages.0.content.2 is 'image_url'" in read(
        chat({"role": "user", "content": [*parts, picture]})
    )


@pytest.mark.parametrize(
    ("last", "result"),
    [
        ([{"text": "7"}], "<think></think>7"),
        ([{"text": "7", "thought": True}], "not_text: messages.1.parts.0 is 'thought'"),
        ([{"functionCall": {"name": "f"}}], "not_text: messages.1.parts.0 is 'functionCall'"),
    ],
)
def test_the_parts_of_gemini_are_the_text_of_a_turn(last: list[object], result: str):
    user = {"role": "user", "parts": [{"text": "3+4?"}]}

    assert result in read(chat(user, {"role": "model", "parts": last}))


@pytest.mark.parametrize(
    "part", [{"type": "thinking", "thinking": "3+4=7"}, {"type": "reasoning", "text": "3+4=7"}]
)
def test_a_thought_may_be_a_part_of_the_content(part: dict[str, object]):
    user = {"role": "user", "content": [{"type": "input_text", "text": "3+4?"}]}
    text = {"type": "output_text", "text": "7", "annotations": []}
    last = {"role": "assistant", "content": [part, text]}

    assert "<think>3+4=7</think>7" == read(chat(user, last))
    assert "two_thoughts: " in read(chat(user, last | {"reasoning": "4+3"}))
    assert "the last turn alone is trained" in read(chat(user, last, user, SHOWN))
    assert "messages.1.content is not read: it is list" in read(
        chat(user, last | {"content": [{"type": "thinking", "thinking": [text]}, text]})
    )


def test_a_single_part_is_the_text_and_an_empty_object_is_no_call():
    user = {"role": "user", "content": {"type": "text", "text": "3+4?"}}

    assert "<think></think>7" == read(chat(user, SHOWN | {"function_call": {}}))


def test_two_places_for_one_thing_are_refused_unless_they_agree():
    turns = [{"role": "user", "content": "3+4?"}, SHOWN]

    assert "<think></think>7" == read(chat(*turns, response="7"))
    assert "two_responses: 'response' and" in read(chat(*turns, response="8"))
    assert "two_chats: messages and conversations" in read(chat(*turns, conversations=turns))
    assert "two_chats: messages and prompt" in read(chat(*turns, prompt="3+4?"))


def test_a_prompt_may_be_turns():
    row = {"domain": "maths", "language": "en", "prompt": [{"role": "user", "content": "3+4?"}]}

    (item,) = prompt_jsonl(RawRow("1", "0" * 64, row | {"response": "7"}))

    assert ["3+4?"] == [message.content for message in item.record.messages]
