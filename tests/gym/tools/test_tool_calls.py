"""Tool calls as JSON lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.tools.tool_calls import parse_calls, verify, well_formed
from tests.tables import for_each
from tests.timing import timed

GOLD = {
    "calls": [
        {"name": "search", "parameters": {"q": "shoes", "page": 1}},
        {"name": "track", "parameters": {"id": 7}},
    ]
}
LINES = [json.dumps(call) for call in GOLD["calls"]]


@for_each(
    "response",
    [
        "\n".join(LINES),
        "\n\n".join(reversed(LINES)),
        "<think>Look it up.</think>\n<tool_call>\n" + "\n".join(LINES) + "\n</tool_call>",
        "".join(f"<tool_call>\n{line}\n</tool_call>\n" for line in LINES),
        "<tool_call>" + "\n".join(LINES) + "</tool_call><response>On my way.</response>",
        json.dumps(GOLD["calls"][0], indent=2) + "\n" + LINES[1],
    ],
)
def test_the_right_calls_score_one(problem, response: str) -> None:
    assert 1.0 == verify(problem("tool_calls", GOLD), response).score


@for_each(
    ("response", "expected", "reason"),
    [
        # S_max 1 + 3 + 2 = 6. One of two calls: raw 1/2 + 1 + 2.
        (LINES[0], 3.5 / 6, "partial"),
        # Wrong value: raw 1 + (1 + 1) + (1 + 1).
        (LINES[0].replace("shoes", "bags") + LINES[1], 5 / 6, "partial"),
        (LINES[0].replace("1", "true") + LINES[1], 5 / 6, "partial"),
        ('{"name": "buy", "parameters": {}}', 0.0, "wrong"),
        ("Sure, I will search.", 0.0, "unparsable_calls"),
        ("\n".join(LINES) + "\nDone!", 0.0, "unparsable_calls"),
        ("<tool_call>" + LINES[0], 0.0, "unparsable_calls"),
        ('{"name": "search", "arguments": {}}', 0.0, "unparsable_calls"),
        ('{"name": "search", "name": "track", "parameters": {}}', 0.0, "unparsable_calls"),
        ("[" + ",".join(LINES) + "]", 0.0, "unparsable_calls"),
        ("<think>" + LINES[0], 0.0, "no_answer"),
    ],
)
def test_part_of_the_calls_scores_its_share(problem, response, expected, reason) -> None:
    verdict = verify(problem("tool_calls", GOLD), response)

    assert (pytest.approx(expected), reason) == (verdict.score, verdict.reason)


def test_where_nothing_is_to_be_called_not_calling_is_right(problem) -> None:
    nothing = problem("tool_calls", {"calls": []})

    assert 1.0 == verify(nothing, "I cannot do that with these tools.").score
    assert 0.0 == verify(nothing, LINES[0]).score
    assert 0.0 == verify(nothing, "<tool_call>\nbroken\n</tool_call>").score


NEEDLESS = {
    "behind-prose": f"I will look it up.\n{LINES[0]}",
    "before-prose": f"{LINES[0]} That should do.",
    "list": f"[{LINES[0]}, {LINES[0]}]",
    "fence": f"```json\n{json.dumps(GOLD['calls'][0], indent=2)}\n```",
    "openai-text": '{"name": "search", "arguments": "{}"}',
    "openai": '{"type": "function", "function": {"name": "search", "arguments": "{}"}}',
    "openai-list": '{"tool_calls": [{"function": {"name": "search"}}]}',
    "anthropic": '{"type": "tool_use", "name": "search", "input": {}}',
    "name": '{"name": "search"}',
    "function": '{"function":"f","arguments":{}}',
    "function-flat": '{"function": "f", "q": "shoes"}',
    "tool-name": 'Calling {"tool_name": "search", "q": "shoes"} now.',
    "action": '{"action": "search", "action_input": {"q": "shoes"}}',
    "react": 'Thought: look.\nAction: search\nAction Input: {"q": "shoes"}',
    "json-rpc": '{"method": "search", "params": {"q": "shoes"}}',
    "arguments-first": '{"arguments": {"q": "shoes"}, "name": "search"}',
    "unclosed": '{"name": "search", "parameters": {"q": "shoes"',
    "unclosed-name": 'So: {"name": "search"',
    "single-quotes": "{'name': 'search', 'parameters': {}}",
    "no-quotes": "{name: 'search', parameters: {q: 'shoes'}}",
    "typeset-quotes": "{\u201cname\u201d: \u201csearch\u201d, \u201carguments\u201d: {}}",
    "capitals": '{"Name": "search", "Arguments": {}}',
    "escaped-letter": '{"n\\u0061me": "search", "parameters": {}}',
    "escaped-quotes": '{"content": "{\\"name\\": \\"search\\", \\"parameters\\": {}}"}',
    "repeated-key": '{"name": "search", "name": "track", "parameters": {}}',
    "response-block": f"<response>{LINES[0]}</response>",
    "tag": "<function=search><parameter=q>shoes</parameter></function>",
    "tag-alone": "<function=f>",
    "tag-invoke": '<invoke name="search">',
    "tag-open": "<tool_call>search",
    "tag-bars": "<|tool_call|>search",
    "python": "search(q='shoes', page=1)",
    "python-list": "[search(q='shoes'), track()]",
    "python-fence": "```python\nsearch(q='shoes')\n```",
    "braces": "{" * 5000 + LINES[0],
    "open-objects": '{"a":' * 20_000 + LINES[0],
}


@for_each("call", NEEDLESS.values())
def test_a_call_in_any_text_and_form_is_needless_where_none_is_wanted(problem, call) -> None:
    nothing = problem("tool_calls", {"calls": []})
    seconds, verdict = timed(lambda: verify(nothing, call), 0.2)

    assert (0.0, "needless_call") == (verdict.score, verdict.reason)
    assert seconds < 0.2


UNCALLED = {
    "record": 'Its record is {"name": "Tan", "age": 4}.',
    "error": 'The shop answers {"error": "no stock", "items": []}, so there is nothing to do.',
    "no-calls": '{"tool_calls": []}',
    "no-tool": '{"tool": "none"}',
    "null": '{"function_call": null, "content": "I cannot."}',
    "empty": "{}",
    "list": "[]",
    "fence": '```json\n{"size": 4, "names": ["a", "b"]}\n```',
    "quoted-key": 'What is your name? The field "name" is empty: {"name": null}.',
    "prose": "The name: search. Its function: to find shoes (q = shoes).",
    "python-example": "print()",
    "python-in-prose": "sin(x=0) would be 0, and f(a=1) is no tool.",
    "python-positions": "[a](b.html), len([1])",
    "names": "None of the tools (search, track) does that; the function search takes arguments.",
}


@for_each("text", UNCALLED.values())
def test_prose_and_data_are_no_needless_call(problem, text) -> None:
    assert 1.0 == verify(problem("tool_calls", {"calls": []}), text).score


def test_a_block_that_is_not_closed_is_no_call() -> None:
    assert parse_calls("<tool_call>" + LINES[0]) is None
    assert parse_calls(LINES[0] + "</tool_call>") is None


def test_deep_nesting_is_refused_and_does_not_raise() -> None:
    deep = '{"name": "f", "parameters": ' + '{"a":' * 50_000

    assert parse_calls(deep) is None


THINK, CALL, ANSWER = "<think>a</think>", "<tool_call>\n{}\n</tool_call>", "<response>b</response>"


@pytest.mark.parametrize(
    ("call", "answer", "response"),
    [
        (True, False, f"{THINK}\n{CALL}"),
        (False, True, f"{THINK}\n{ANSWER}\n"),
        (True, True, f"{THINK}{CALL}{ANSWER}"),
        (False, False, THINK),
    ],
)
def test_a_response_has_the_form_that_is_expected_and_no_other(problem, call, answer, response):
    for other_call in (True, False):
        for other_answer in (True, False):
            expected = (call, answer) == (other_call, other_answer)

            assert expected == well_formed(response, call=other_call, answer=other_answer)
    for spoiled in (
        f"x{response}",
        f"{response}x",
        f"{THINK}{response}",
        response.replace("</", "<"),
    ):
        assert not well_formed(spoiled, call=call, answer=answer)


def test_tags_in_the_wrong_order_are_malformed() -> None:
    assert not well_formed(f"{THINK}{ANSWER}{CALL}", call=True, answer=True)


TOOLRL = {"calls": GOLD["calls"], "form": "toolrl"}
BLOCK = "<tool_call>\n" + "\n".join(LINES) + "\n</tool_call>"


@for_each(
    ("response", "reward"),
    [
        (f"{THINK}\n{BLOCK}", 4.0),
        (BLOCK, 3.0),
        (f"{THINK}\n{BLOCK}{ANSWER}", 3.0),
        (f"{THINK}\n{BLOCK.replace('shoes', 'bags')}", 1.0 + 2.0),
        (f"{THINK}\n<tool_call>broken</tool_call>", 1.0 - 3.0),
        ("broken", -3.0),
    ],
)
def test_in_toolrl_form_the_score_is_the_whole_reward_rescaled(problem, response, reward) -> None:
    verdict = verify(problem("tool_calls", TOOLRL), response)

    assert pytest.approx((reward + 3) / 7) == verdict.score
    assert (reward == 4.0) == verdict.solved


def test_in_toolrl_form_without_calls_the_form_decides(problem) -> None:
    nothing = problem("tool_calls", {"calls": [], "form": "toolrl", "answer": True})

    assert 1.0 == verify(nothing, f"{THINK}\n{ANSWER}").score
    assert 0.0 == verify(nothing, "I cannot").score
    assert 0.0 == verify(nothing, f"{THINK}\n{CALL}{ANSWER}").score


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["f", "g"]),
            "parameters": st.dictionaries(
                st.sampled_from("ab"), st.integers(0, 2) | st.booleans() | st.text("xy", max_size=2)
            ),
        }
    ),
    min_size=1,
    max_size=4,
)


@given(calls=CALLS, data=st.data(), space=st.sampled_from(["\n", " \n\t", ""]))
def test_order_of_calls_keys_and_space_do_not_matter(problem, calls, data, space) -> None:
    one = problem("tool_calls", {"calls": calls})
    shuffled = data.draw(st.permutations(calls))
    written = [json.dumps(call, indent=data.draw(st.sampled_from([None, 2]))) for call in shuffled]

    assert (1.0, "correct") == (
        verify(one, space.join(written)).score,
        verify(one, space.join(written)).reason,
    )


@given(calls=CALLS, made=CALLS, tail=st.text("ab {}<>\n", min_size=1, max_size=20))
def test_text_after_the_calls_never_gains(problem, calls, made, tail) -> None:
    lines = "\n".join(map(json.dumps, made))
    one = problem("tool_calls", {"calls": calls})
    for response in (lines, f"<tool_call>{lines}</tool_call>"):
        assert verify(one, f"{response}\n{tail}").score <= verify(one, response).score
