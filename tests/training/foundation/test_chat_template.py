"""The shipped base is taught, paid and served in one form of calls: that of its chat template."""

import random
import re
from itertools import islice
from typing import Any

import pytest
from transformers import AutoTokenizer

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.shop import POLICY, TOOLS, draw_cases
from tasks.gym.tools.forms import FORMS, served_part
from tasks.models.chat_trial import call_form
from tasks.training.foundation.base import shipped_base
from tests.gym.tools.test_served_calls import serve

SIGNATURE = re.compile(r"(\w+)\(([^)]*)\)")


def rendered(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str:
    tokenizer = AutoTokenizer.from_pretrained(shipped_base(), local_files_only=True)
    return str(
        tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=True, tokenize=False
        )
    )


def offer(listing: str) -> list[dict[str, Any]]:
    """What a client sends for a line of signatures."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {one: {"type": "string"} for one in parameters.split(", ")},
                },
            },
        }
        for name, parameters in SIGNATURE.findall(listing)
    ]


def items(amount: int) -> list[MarketItem]:
    return list(islice(draw_items(random.Random(0), Domain.TOOL_USE, problems=False), amount))


def test_a_server_renders_the_prompts_of_the_sample_world_from_their_functions():
    for item in items(20):
        listing, wish = item.prompt.split("\n")

        assert rendered([{"role": "user", "content": item.prompt}]) == rendered(
            [{"role": "user", "content": wish}], offer(listing)
        )


def test_a_server_renders_the_prompts_of_the_sample_shop_from_its_functions():
    (case,) = islice(draw_cases(random.Random(0), problems=False), 1)
    system = {"role": "system", "content": POLICY}
    later = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "Thanks."}]
    taught = {"role": "user", "content": f"{TOOLS}\n{case.request}"}

    assert rendered([system, taught, *later]) == rendered(
        [system, {"role": "user", "content": case.request}, *later], offer(TOOLS)
    )


def test_a_turn_with_calls_is_written_as_it_was_taught():
    assert "hermes" == call_form(shipped_base())
    for item in items(20):
        calls = item.answer["calls"]
        assert isinstance(calls, list)
        turn = {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": one["name"], "arguments": one["parameters"]}} for one in calls
            ],
        }

        assert f"<|im_start|>assistant\n{item.solution}<|im_end|>" in rendered([turn])


def test_arguments_may_be_text_and_a_call_may_follow_words():
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    turn = {"role": "assistant", "content": "So.", "tool_calls": [call]}

    assert 'So.\n<tool_call>\n{"name":"f","arguments":{"a": 1}}\n</tool_call><|im_end|>' in (
        rendered([turn])
    )


def test_a_function_with_a_description_is_listed_whole_and_one_without_parameters_by_its_name():
    bare = {"type": "function", "function": {"name": "f"}}
    whole = {"type": "function", "function": {"name": "g", "description": "G."}}
    question = [{"role": "user", "content": "?"}]

    assert "<|im_start|>user\nf() f()\n?<|im_end|>" in rendered(question, [bare, bare])
    assert (
        '{"name": "f"}}\n{"type": "function", "function": {"name": "g", "description": "G."}}\n?'
        in (rendered(question, [bare, whole]))
    )


def test_what_the_base_is_taught_is_what_is_paid():
    for item in items(50):
        calls = FORMS["hermes"].parse(served_part(item.careful), ())

        assert calls is not None
        assert item.answer["calls"] == [
            {"name": one.name, "parameters": dict(one.parameters)} for one in calls
        ]
        assert "hermes" == item.answer["form"]


@pytest.mark.engines
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_makes_the_calls_of_every_right_answer(stream: bool):
    for item in items(20):
        calls = item.answer["calls"]
        assert isinstance(calls, list)

        assert calls == serve("hermes", item.careful, calls, stream=stream)


@pytest.mark.engines
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_makes_the_calls_of_the_clerk_of_the_sample_shop(stream: bool):
    for case in islice(draw_cases(random.Random(0), problems=False), 10):
        for turn in case.clerk(careful=True)[:-1]:
            calls = FORMS["hermes"].parse(served_part(turn), ())
            assert calls
            expected = [{"name": one.name, "parameters": dict(one.parameters)} for one in calls]

            assert expected == serve("hermes", turn, expected, stream=stream)
