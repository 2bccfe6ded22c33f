"""The forms in which models write tool calls, each exactly as a server reads it.

What is paid has to be what is served: `parse` reads what vLLM 0.30.0's tool parser of the form's
name reads behind its reasoning parser deepseek_r1, whole *and* streamed, and returns the same
calls; of what these two disagree on it reads nothing (`tests/gym/tools/test_served_calls.py`).

    hermes       a block: <tool_call>, {"name": "f", "arguments": {"a": 1}}, </tool_call>
    qwen3_xml    a block: <tool_call>, <function=f>, <parameter=a>, 1, </parameter>, ...
    llama3_json  {"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}
    pythonic     [f(a=1), g(b="x")]

Which of them a model writes is a property of its chat template (`chat_trial.call_form`).
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from data_schemas.json_text import each_key_once, refuse_constant
from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.protocol import THINK_CLOSE
from tasks.gym.tools.python_calls import parse_python_calls

Strings = Collection[tuple[str, str]]
"""Function and parameter of every value that is a string: XML does not say."""
CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
_DECODER = json.JSONDecoder(object_pairs_hook=each_key_once, parse_constant=refuse_constant)
# Name before arguments: a stream shows the first key "name", and everything behind "arguments".
_HERMES = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*')
_LLAMA = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"parameters"\s*:\s*')
_LLAMA_NEXT = "; "
_CLOSED = re.compile(r"\s*\}")
_FUNCTION = re.compile(r"<function=([^>\s]+)>")
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>")
_MOST_PARAMETERS = 100
_FUNCTION_END, _PARAMETER_END = "</function>", "</parameter>"


@dataclass(frozen=True, slots=True)
class CallForm:
    """One form; its name is that of the server's tool parser."""

    parse: Callable[[str, Strings], list[ToolCall] | None]
    """Reads what follows the thought, blanks included; None for what the server does not read."""
    write: Callable[[Sequence[ToolCall]], str]
    request: str
    """What a prompt says where the chat template does not."""
    begin: str = ""
    """Begins the first call; text may stand before it. '' = calls are the whole text."""


def served_part(response: str) -> str:
    """Return what a server's tool parser sees: all that follows the thought, blanks included."""
    return response.partition(THINK_CLOSE)[2] if THINK_CLOSE in response else response


def calls_while_thinking(response: str) -> bool:
    """Say whether a thought contains a call: some servers end the thought there, and make it."""
    thought, end, _ = response.partition(THINK_CLOSE)
    return bool(end) and CALL_OPEN in thought


def cut(text: str, tag: str) -> tuple[list[str], list[str]]:
    """Return the texts inside closed tags and the texts around them, both in order."""
    inside: list[str] = []
    around: list[str] = []
    position = 0
    while True:
        start = text.find(f"<{tag}>", position)
        end = text.find(f"</{tag}>", start) if start >= 0 else -1
        if end < 0:
            return inside, [*around, text[position:]]
        around.append(text[position:start])
        inside.append(text[start + len(tag) + 2 : end])
        position = end + len(tag) + 3


def _hermes(text: str, _: Strings) -> list[ToolCall] | None:
    return _blocks(text, _object)


def _qwen3_xml(text: str, strings: Strings) -> list[ToolCall] | None:
    return _blocks(text, partial(_function, strings=strings))


def _blocks(text: str, read: Callable[[str], ToolCall | None]) -> list[ToolCall] | None:
    """Read every block; the last must be closed, and nothing between blocks may open one."""
    blocks, around = cut(text, "tool_call")
    if any(tag in part for part in around for tag in (CALL_OPEN, CALL_CLOSE)):
        return None
    calls = [read(block) for block in blocks]
    return None if None in calls else [call for call in calls if call is not None]


def _object(text: str) -> ToolCall | None:
    match = _HERMES.match(text)
    if match is None:
        return None
    try:
        value, end = _DECODER.raw_decode(text, match.end())
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or text[end:].strip() != "}":
        return None
    return ToolCall(match[1], value)


def _llama3_json(text: str, _: Strings) -> list[ToolCall] | None:
    calls: list[ToolCall] = []
    position = 0
    while match := _LLAMA.match(text, position):
        try:
            value, end = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            return None
        closed = _CLOSED.match(text, end)
        if not isinstance(value, dict) or closed is None:
            return None
        calls.append(ToolCall(match[1], value))
        position = closed.end()
        if not text.startswith(_LLAMA_NEXT, position):
            return calls if not text[position:].strip() else None
        position += len(_LLAMA_NEXT)
    return None


def _pythonic(text: str, _: Strings) -> list[ToolCall] | None:
    if not text.startswith("[") or not text.rstrip().endswith("]"):
        return None
    calls = parse_python_calls(text, keywords=False)
    return None if calls is None or any("." in call.name for call in calls) else calls


def _function(block: str, strings: Strings) -> ToolCall | None:
    block = block.strip()
    match = _FUNCTION.match(block)
    if match is None or block.find(_FUNCTION_END) != len(block) - len(_FUNCTION_END):
        return None
    rest = block[match.end() : -len(_FUNCTION_END)].lstrip()
    parameters: dict[str, Any] = {}
    while rest:
        start, end = _PARAMETER.match(rest), rest.find(_PARAMETER_END)
        if start is None or end < 0 or start[1] in parameters:
            return None
        is_string = (match[1], start[1]) in strings
        parameters[start[1]] = _value(rest[start.end() : end], is_string=is_string)
        if len(parameters) > _MOST_PARAMETERS:
            return None
        rest = rest[end + len(_PARAMETER_END) :].lstrip()
    return ToolCall(match[1], parameters)


def _value(text: str, *, is_string: bool) -> Any:
    text = text.removeprefix("\n").removesuffix("\n")
    if is_string:
        return text
    try:
        return json.loads(text, object_pairs_hook=each_key_once, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_hermes(calls: Sequence[ToolCall]) -> str:
    objects = [{"name": one.name, "arguments": dict(one.parameters)} for one in calls]
    return "\n".join(f"{CALL_OPEN}\n{_json(one)}\n{CALL_CLOSE}" for one in objects)


def _write_llama(calls: Sequence[ToolCall]) -> str:
    objects = [{"name": one.name, "parameters": dict(one.parameters)} for one in calls]
    return _LLAMA_NEXT.join(map(_json, objects))


def _write_pythonic(calls: Sequence[ToolCall]) -> str:
    return f"[{', '.join(map(_python_call, calls))}]"


def _python_call(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.parameters.items())
    return f"{call.name}({arguments})"


def _write_xml(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"{CALL_OPEN}\n{_xml_call(call)}{CALL_CLOSE}" for call in calls)


def _xml_call(call: ToolCall) -> str:
    values = {
        name: value if isinstance(value, str) else _json(value)
        for name, value in call.parameters.items()
    }
    inside = "".join(
        f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items()
    )
    return f"<function={call.name}>\n{inside}</function>\n"


_EXAMPLE = (ToolCall("NAME", {"PARAMETER": "VALUE"}),)
_BLOCKS = "Write one such block for every call."


def _form(
    parse: Callable[[str, Strings], list[ToolCall] | None],
    write: Callable[[Sequence[ToolCall]], str],
    several: str,
    begin: str = "",
) -> CallForm:
    request = f"To call a function, write\n{write(_EXAMPLE)}\n{several}"
    return CallForm(parse, write, request, begin)


FORMS = {
    "hermes": _form(_hermes, _write_hermes, _BLOCKS, CALL_OPEN),
    "qwen3_xml": _form(_qwen3_xml, _write_xml, _BLOCKS, CALL_OPEN),
    "llama3_json": _form(
        _llama3_json, _write_llama, "and nothing else. Put '; ' between several calls."
    ),
    "pythonic": _form(_pythonic, _write_pythonic, "and nothing else. Put all calls into one list."),
}
"""By the name of the server's tool parser."""
