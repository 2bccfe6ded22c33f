"""Score tool calls by name, keys and values (ToolRL's R_correct).

Gold: {"calls": [{"name": "f", "parameters": {"a": 1}}]}. A response is one JSON object per line,
bare or inside <tool_call> tags; R_correct in [-3, 3] is rescaled to [0, 1]. With {"form": "toolrl"}
the whole response must have ToolRL's form as well (a <response> block too if {"answer": true}) and
the score is (R_format + R_correct + 3) / 7. Only a perfect match scores 1.
Any other form is one of `forms` and scored by R_correct: what its server does not read is no call.
Without a form, a <tool_call> block may be that of hermes too. A call within the thought scores 0.
Differs: where the truth has no call, R_correct is constant; here anything that looks like a call
scores 0, in whatever text and form it stands, and no call scores 1, in ToolRL's form R_format.
"""

import json
import re
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.json_text import each_key_once, refuse_constant
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.algorithms.tool_reward import BEST, WORST, ToolCall, tool_correctness, tool_reward
from tasks.gym.protocol import Gold, verify_answer
from tasks.gym.tools.forms import FORMS, calls_while_thinking, cut, served_part
from tasks.gym.tools.python_calls import parse_python_calls

CALL_IN_THOUGHT = "call_in_thought"
AT_THE_TAG = "a server may end the thought at the tag: calls are made there, or lost"
"""Reason and detail, also where a thought only names the tag."""
_BLANK = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\u00([0-7][0-9a-f])", re.IGNORECASE)
_QUOTE = "[\"'\u201c\u201d]"


def _key(names: str) -> str:
    """Match a key with its colon, in quotes or behind the sign that begins it."""
    return rf"(?:{_QUOTE}(?:{names}){_QUOTE}|(?<=[{{,])\s*(?:{names}))\s*:\s*"


_CALLING = re.compile(
    # {"function": "f"}, {"tool_calls": [{...}]}; {"tool": "none"} and {"tool_calls": []} call none
    rf"{_key('(?:function|tool)(?:_(?:name|calls?|use))?')}"
    rf"(?:\[\s*)?(?:\{{(?!\s*\}})|{_QUOTE}(?!\s*(?:none|null|n/a)?\s*{_QUOTE}))|"
    rf"{_key('type')}{_QUOTE}(?:tool_use|function|(?:tool|function)_call){_QUOTE}|"
    # {"name": "f"} with nothing else
    rf"\{{\s*{_QUOTE}?name{_QUOTE}?\s*:\s*{_QUOTE}[^\"'{{}}]{{0,200}}{_QUOTE}?\s*(?:\}}|\Z)|"
    r"<\|?(?:tool_calls?|tool_use|function_calls?|invoke|python_tag)\b|<function[=>]|"
    r"\[TOOL_CALLS\]|^[ \t]*Action Input[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
# "[f(a=1)]", "f(a=1)", also in a fence
_PYTHON = re.compile(r"\s*(?:```\w*\s*|`)?\[?\s*[^\W\d][\w.]*\(")
_NAME = re.compile(rf"{_key('name|action|method')}{_QUOTE}", re.IGNORECASE)
"""Names something to call, if arguments stand beside it."""
_ARGUMENTS = re.compile(
    _key("parameters|params|arguments|args|kwargs|inputs?|(?:action|tool)_input"), re.IGNORECASE
)


class CallRow(BaseModel):
    """One call of the gold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    parameters: dict[str, Any]


class ToolCalls(Gold):
    """The calls to make, in any order."""

    calls: tuple[CallRow, ...] = Field(strict=False)
    form: Literal["lines", "toolrl", "hermes", "qwen3_xml", "llama3_json", "pythonic"] = "lines"
    answer: bool = False


def verify(problem: Problem, response: str) -> Verdict:
    """Score names, keys and values of the calls under the best assignment."""
    return verify_answer(problem, response, ToolCalls, partial(_check, response=response))


def parse_calls(text: str, *, hermes: bool = True) -> list[ToolCall] | None:
    """Read JSON calls from `<tool_call>` blocks, or from the whole text if it has none.

    None if a block is not closed or holds anything but objects with `name` and `parameters`.
    A `<response>` block beside the calls is not read.

    Args:
        text: the answer.
        hermes: a block may have `arguments` in place of `parameters`, as servers read it.
    """
    text = " ".join(cut(text, "response")[1])
    blocks, around = cut(text, "tool_call")
    if any(tag in part for part in around for tag in ("<tool_call>", "</tool_call>")):
        return None
    keys = ("parameters", "arguments") if hermes and blocks else ("parameters",)
    return _objects("\n".join(blocks) if blocks else text, keys)


def looks_like_call(text: str) -> bool:
    """Say whether something in a text, also in JSON that cannot be parsed, is meant as a call."""
    # In a string of JSON, quotes have backslashes before them and letters may be escapes.
    if _calls_python(text):
        return True
    text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text).replace("\\", "")
    return _CALLING.search(text) is not None or (
        _NAME.search(text) is not None and _ARGUMENTS.search(text) is not None
    )


def _calls_python(text: str) -> bool:
    """Say whether a text is calls in Python and nothing else; `print()` alone may be an answer."""
    calls = parse_python_calls(text) if _PYTHON.match(text) else None
    return bool(calls) and ("[" in text.partition("(")[0] or any(one.parameters for one in calls))


def well_formed(response: str, *, call: bool, answer: bool) -> bool:
    """Say whether a whole response has the form of ToolRL: R_format = 1.

    Thinking, then a `<tool_call>` block if `call`, then a `<response>` block if `answer`; each tag
    once, nothing before or after.
    """
    tags = ["think", *(["tool_call"] if call else []), *(["response"] if answer else [])]
    form = r"\s*".join(rf"<{tag}>.*?</{tag}>" for tag in tags)
    once = all(
        response.count(bracket) == (1 if tag in tags else 0)
        for tag in ("think", "tool_call", "response")
        for bracket in (f"<{tag}>", f"</{tag}>")
    )
    return once and re.fullmatch(form, response.strip(), re.DOTALL) is not None


def _objects(text: str, keys: tuple[str, ...]) -> list[ToolCall] | None:
    decoder = json.JSONDecoder(object_pairs_hook=each_key_once, parse_constant=refuse_constant)
    calls: list[ToolCall] = []
    position = 0
    while (position := _end_of_blank(text, position)) < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        match value:
            case {"name": str(name), **rest} if len(rest) == 1:
                ((key, parameters),) = rest.items()
                if key not in keys or not isinstance(parameters, dict):
                    return None
                calls.append(ToolCall(name, parameters))
            case _:
                return None
    return calls


def _end_of_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _predicted(gold: ToolCalls, answer: str, response: str) -> list[ToolCall] | None:
    if gold.form not in FORMS:
        return parse_calls(answer, hermes=gold.form != "toolrl")
    strings = {
        (call.name, name)
        for call in gold.calls
        for name, value in call.parameters.items()
        if isinstance(value, str)
    }
    return FORMS[gold.form].parse(served_part(response), strings)


def _check(gold: ToolCalls, answer: str, *, response: str) -> Verdict:
    truth = [ToolCall(call.name, call.parameters) for call in gold.calls]
    if calls_while_thinking(response):
        return scored(0.0, CALL_IN_THOUGHT, AT_THE_TAG)
    predicted = _predicted(gold, answer, response)
    formed = well_formed(response, call=bool(truth), answer=gold.answer)
    strict = gold.form == "toolrl"
    if not truth:
        if predicted or looks_like_call(answer):
            return scored(0.0, "needless_call")
        return scored(1.0, "correct") if formed or not strict else scored(0.0, "malformed")
    r_correct = tool_correctness(truth, predicted)
    total = tool_reward(truth, predicted, well_formed=formed)
    low, high = (WORST, BEST + 1) if strict else (WORST, BEST)
    share = ((total if strict else r_correct) - low) / (high - low)
    detail = f"R_correct {r_correct:.3f}, R_format {int(formed)}"
    if predicted is None:
        return scored(share, "unparsable_calls", f"{detail}: {answer[:80]}")
    reason = "correct" if share >= 1.0 else "partial" if share > 0.0 else "wrong"
    return scored(min(1.0, max(0.0, share)), reason, detail)
