"""What a request to an endpoint under test says, and what is read from its reply."""

import json
from contextlib import closing

import pytest

from tasks.errors import SettingsError
from tasks.gym.judging.chat_client import ChatClient, ChatReply, ChatSampling
from tasks.gym.judging.endpoint import ApiKey, FailedPrompt, ReplyFailure, _Health, _Losses
from tasks.gym.judging.opening import open_chat
from tests.chat_endpoint import endpoint, prompt, send

KEY = ApiKey("THE_KEY")
GREEDY = ChatSampling(100)


def client_at(address, sampling=GREEDY):
    return closing(
        ChatClient(
            address,
            "served",
            sampling,
            key=KEY,
            timeout_s=20.0,
            max_concurrent=4,
            first_pause_s=0.01,
        )
    )


CALL = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def reply_with(message, **choice):
    body = {"choices": [{"message": message, **choice}], "usage": {"completion_tokens": 12}}
    return lambda handler, *_: send(handler, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "7"}, "7"),
        ({"content": "7", "reasoning_content": "3 + 4"}, "<think>3 + 4</think>7"),
        ({"content": "7", "reasoning": "3 + 4"}, "<think>3 + 4</think>7"),
        ({"content": None, "reasoning_content": "3 +"}, "<think>3 +"),
        ({"content": "7", "reasoning_content": None}, "7"),
        (
            {"content": None, "reasoning": "so", "tool_calls": [CALL]},
            '<think>so</think><tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        ),
    ],
)
def test_reasoning_that_a_server_returns_apart_is_part_of_the_response(message, text):
    with endpoint(reply_with(message)) as address, client_at(address) as client:
        (reply,) = client.ask([prompt("a")])

    assert text == reply.text  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.attack
@pytest.mark.parametrize("usage", [[1], {"completion_tokens": [1]}, "much", None])
def test_a_usage_that_is_no_count_costs_no_reply(usage):
    body = {"choices": [{"message": {"content": "7"}}], "usage": usage}
    answer = json.dumps(body).encode()
    with endpoint(lambda handler, *_: send(handler, answer)) as address, client_at(address) as one:
        assert [ChatReply("7", "", 0, truncated=False)] == one.ask([prompt("a")])


def test_length_and_truncation_are_those_that_the_server_reports():
    behave = reply_with({"content": "and so"}, finish_reason="length")
    with endpoint(behave) as address, client_at(address) as client:
        assert [ChatReply("and so", "", 12, truncated=True)] == client.ask([prompt("a")])


def test_the_sampling_parameters_are_sent_and_every_prompt_has_its_seed():
    seen = []

    def behave(handler, asked, number):
        seen.append(asked)
        reply_with({"content": "7"})(handler, asked, number)

    sampling = ChatSampling(64, temperature=0.6, top_p=0.95, min_p=0.1, stop=("END",))
    with endpoint(behave) as address, client_at(address, sampling) as client:
        assert {0, 1} == dict(client.stream([prompt("a"), prompt("b")], [5, 6])).keys()

    wanted = {"max_tokens": 64, "temperature": 0.6, "top_p": 0.95, "min_p": 0.1, "stop": ["END"]}
    assert all(
        wanted.items() <= {k: v for k, v in one.items() if k in wanted}.items() for one in seen
    )
    assert {("a", 5), ("b", 6)} == {(one["messages"][0]["content"], one["seed"]) for one in seen}


def test_a_prompt_that_the_endpoint_refuses_is_no_reply_and_the_others_are_answered():
    def behave(handler, asked, number):
        if asked["messages"][0]["content"] == "too long":
            return send(handler, b"context length", 400)
        return reply_with({"content": "7"})(handler, asked, number)

    with endpoint(behave) as address, client_at(address) as client:
        first, second = client.ask([prompt("too long"), prompt("a")])

    assert isinstance(first, FailedPrompt)
    assert ReplyFailure.REFUSED is first.loss
    assert "context length" in first.cause
    assert "7" == second.text  # pyright: ignore[reportAttributeAccessIssue]


def test_a_key_is_sent_to_its_own_host_only(monkeypatch):
    seen = []

    def behave(handler, asked, number):
        seen.append(handler.headers["Authorization"])
        reply_with({"content": "7"})(handler, asked, number)

    with endpoint(behave) as ours, endpoint(behave) as others:
        host = ours.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("EACHPROMPT_ENDPOINT_KEYS", f"api.example.com=one,{host}=s3cret")
        for address in (ours, others):
            with closing(open_chat(address, "served", ChatSampling(8))) as client:
                client.ask([prompt("a")])

    assert ["Bearer s3cret", None] == seen


def test_a_refused_key_names_its_variable_and_not_its_value():
    with (
        endpoint(lambda handler, *_: send(handler, b"", 401)) as address,
        client_at(address) as client,
        pytest.raises(SettingsError, match="THE_KEY"),
    ):
        client.ask([prompt("a")])


def down(health):
    """Lose as many prompts in a row as the endpoint may before it counts as down."""
    for _ in range(2):
        assert health.admits(_Losses())
        health.note_loss("TimeoutError: timed out")


def test_an_endpoint_that_is_down_is_sent_one_prompt_at_a_time_over_all_calls():
    health, first, second = _Health(2, pause_s=0.0), _Losses(), _Losses()
    down(health)

    assert [True, False, False] == [health.admits(one) for one in (first, first, second)]
    assert "TimeoutError: timed out" == health.cause


def test_a_call_whose_prompt_is_lost_too_leaves_the_next_one_to_another_call():
    health, first, second = _Health(2, pause_s=0.0), _Losses(), _Losses()
    down(health)
    assert health.admits(first)
    health.note_loss("status 503")

    assert [False, True, False] == [health.admits(one) for one in (first, second, _Losses())]


def test_an_endpoint_that_replies_again_is_sent_everything():
    health, first = _Health(2, pause_s=0.0), _Losses()
    down(health)
    assert health.admits(first)
    health.note_reply()

    assert [True] * 3 == [health.admits(one) for one in (first, first, _Losses())]


def test_lost_prompts_that_are_not_in_a_row_do_not_count_as_down():
    health = _Health(2, pause_s=0.0)
    health.note_loss("status 503")
    health.note_reply()
    health.note_loss("status 503")

    assert health.admits(_Losses())
