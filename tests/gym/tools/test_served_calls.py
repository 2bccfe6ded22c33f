"""What is paid is what a server serves: our reading of calls and that of vLLM's own parsers."""

import json
import random
from typing import Any

import pytest

from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.table import score_batch
from tasks.gym.tools.forms import FORMS
from tests.gym.tools.vllm_parsers import opened, parsed
from tests.tables import for_each

F, G = {"name": "f", "parameters": {"a": 1}}, {"name": "g", "parameters": {"b": "x"}}
HERMES = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
XML = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
LLAMA, LLAMA_G = (
    '{"name": "f", "parameters": {"a": 1}}',
    '{"name": "g", "parameters": {"b": "x"}}',
)
SERVED: list[tuple[str, str, list[dict]]] = [
    ("hermes", HERMES, [F]),
    ("hermes", f"\n\n{HERMES}", [F]),
    ("hermes", f"I call.\n{HERMES}\nDone.", [F]),
    ("hermes", HERMES + HERMES.replace('"f"', '"g"').replace('"a": 1', '"b": "x"'), [F, G]),
    ("hermes", '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', []),
    ("hermes", HERMES.replace("arguments", "parameters"), []),
    ("hermes", LLAMA, []),
    ("hermes", "[f(a=1)]", []),
    ("qwen3_xml", XML, [F]),
    ("qwen3_xml", f"\n{XML}\n", [F]),
    ("qwen3_xml", HERMES, []),
    ("llama3_json", LLAMA, [F]),
    ("llama3_json", f"{LLAMA}; {LLAMA_G}", [F, G]),
    ("llama3_json", f"{LLAMA};{LLAMA_G}", []),
    ("llama3_json", f"{LLAMA}\n{LLAMA_G}", []),
    ("llama3_json", f"\n{LLAMA}", []),
    ("pythonic", "[f(a=1)]", [F]),
    ("pythonic", '[f(a=1), g(b="x")]', [F, G]),
    ("pythonic", "\n[f(a=1)]", []),
    ("pythonic", "```python\n[f(a=1)]\n```", []),
    ("pythonic", "[m.f(a=1)]", []),
    ("pythonic", "[f(from=1)]", []),
]
"""Form, what follows the thought, and the calls that a server makes of it, whole and streamed."""


def calls_of(name: str, text: str) -> list[dict]:
    calls = FORMS[name].parse(text, {("g", "b")}) or []
    return [{"name": one.name, "parameters": dict(one.parameters)} for one in calls]


@for_each(("name", "text", "calls"), SERVED)
def test_a_form_reads_what_its_server_serves(name: str, text: str, calls: list[dict]) -> None:
    assert calls == calls_of(name, text)


@for_each("verifier", ["tool_calls", "bfcl_calls"])
@for_each("name", sorted(FORMS))
def test_only_the_form_of_the_base_is_paid(problem, verifier: str, name: str) -> None:
    call = F if verifier == "tool_calls" else {"name": "f", "parameters": {"a": [1]}}
    gold = problem(verifier, {"calls": [call], "form": name})
    answers = {form: FORMS[form].write([ToolCall("f", {"a": 1})]) for form in FORMS}

    responses = [f"<think>so</think>{text}" for text in answers.values()]
    verdicts = score_batch([gold] * len(FORMS), responses)

    assert {form: form == name for form in answers} == {
        form: verdict.solved for form, verdict in zip(answers, verdicts, strict=True)
    }


def test_the_form_that_servers_read_is_paid_where_none_is_named(problem) -> None:
    gold = problem("tool_calls", {"calls": [F, G]})
    both = HERMES + HERMES.replace('"f"', '"g"').replace('"a": 1', '"b": "x"')

    (verdict,) = score_batch([gold], [f"<think>so</think>{both}"])

    assert "correct" == verdict.reason


@pytest.mark.parametrize("verifier", ["tool_calls", "bfcl_calls"])
@pytest.mark.parametrize("calls", [True, False])
def test_a_call_within_the_thought_earns_nothing(problem, verifier: str, calls: bool) -> None:
    call = F if verifier == "tool_calls" else {"name": "f", "parameters": {"a": [1]}}
    gold = problem(verifier, {"calls": [call] if calls else []})
    answer = HERMES if calls else "None fits."

    (verdict,) = score_batch([gold], [f"<think>{HERMES} no</think>{answer}"])

    assert (0.0, "call_in_thought") == (verdict.score, verdict.reason)


def drawn(rng: random.Random, depth: int = 0) -> Any:
    kinds = [rng.randrange(-9, 99), rng.random(), rng.random() < 0.5, None, text(rng)]
    if depth < 2:
        kinds += [[drawn(rng, depth + 1) for _ in range(rng.randrange(3))]]
        kinds += [{text(rng): drawn(rng, depth + 1) for _ in range(rng.randrange(3))}]
    return rng.choice(kinds)


def text(rng: random.Random) -> str:
    return "".join(rng.choice("ab ก\"'{}[]()=,;:\\\n/") for _ in range(rng.randrange(6)))


def drawn_calls(seed: int) -> list[ToolCall]:
    rng = random.Random(seed)
    return [
        ToolCall("f", {"o": drawn(rng), "l": drawn(rng)} if rng.random() < 0.8 else {"o": 1}),
        ToolCall("g", {"b": text(rng) + "."}),
    ][: rng.randrange(1, 3)]


@pytest.mark.parametrize("name", sorted(FORMS))
def test_what_a_form_writes_it_reads_as_the_same_calls(name: str) -> None:
    for seed in range(200):
        calls = drawn_calls(seed)
        strings = {
            (one.name, key)
            for one in calls
            for key, value in one.parameters.items()
            if isinstance(value, str)
        }

        assert calls == FORMS[name].parse(FORMS[name].write(calls), strings), seed


KINDS = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
"""Type of a value -> its name in the schema that vLLM is given beside the table's calls."""


def serve(name: str, response: str, calls: list[dict], *, stream: bool) -> list[dict]:
    """What vLLM's reasoning parser deepseek_r1 and a tool parser make of a response.

    The request offers the functions of `calls`, with the types of their arguments.
    """
    tools = [
        {
            "type": "function",
            "function": {
                "name": one["name"],
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": KINDS[type(value)]}
                        for key, value in one["parameters"].items()
                    },
                },
            },
        }
        for one in calls
    ]
    if not stream:
        pairs = parsed(name, response, tools)[2]
    else:
        tokenizer, request, parser = opened(name, tools)
        ids = tokenizer(response, add_special_tokens=False)["input_ids"]
        parts: dict[int, list[str]] = {}
        before, first = "", 0
        for end in range(1, len(ids) + 1):
            now = tokenizer.decode(ids[:end])
            if now.endswith("\N{REPLACEMENT CHARACTER}") and end < len(ids):
                continue
            delta = parser.parse_delta(
                now[len(before) :],
                ids[first:end],
                request,
                prompt_token_ids=[5],
                finished=end == len(ids),
            )
            before, first = now, end
            for one in (delta and delta.tool_calls) or []:
                part = parts.setdefault(one.index, ["", ""])
                part[0] += one.function.name or ""
                part[1] += one.function.arguments or ""
        pairs = [(function, arguments) for _, (function, arguments) in sorted(parts.items())]
    return [
        {"name": function, "parameters": json.loads(arguments or "{}")}
        for function, arguments in pairs
    ]


@pytest.mark.engines
@pytest.mark.parametrize(("name", "text", "calls"), [row for row in SERVED if row[2]])
def test_a_server_makes_the_same_calls_whole_and_streamed(name, text, calls) -> None:
    for stream in (False, True):
        assert calls == serve(name, f"<think>so</think>{text}", calls, stream=stream)


@pytest.mark.engines
@pytest.mark.parametrize(("name", "text", "calls"), [row for row in SERVED if not row[2]])
def test_what_is_not_paid_is_lost_whole_or_streamed(name, text, calls) -> None:
    results = []
    for stream in (False, True):
        try:
            results.append(serve(name, f"<think>so</think>{text}", [F, G], stream=stream))
        except ValueError:  # arguments that are no JSON
            results.append([])

    assert calls in results or results[0] != results[1]


@pytest.mark.engines
@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_server_reads_what_a_form_writes(name: str) -> None:
    for seed in range(20):
        calls = drawn_calls(seed)
        expected = [{"name": one.name, "parameters": dict(one.parameters)} for one in calls]

        for stream in (False, True):
            response = f"<think>so</think>{FORMS[name].write(calls)}"
            assert expected == serve(name, response, expected, stream=stream), (seed, stream)
