"""The turns of a chat as others write them: every key of a turn is used, or refused by name.

A key whose value is null is not there: a column store writes null for every key that another turn
has. Keys that a turn may have besides `role` and `content`, `from` and `value` (ShareGPT), or
`role` and `parts` (Gemini):

- `reasoning_content`, `reasoning`, `thinking`, `reasoning_details`: the thought of the last turn,
  which parts of its content may be, too.
- `weight`, `loss`: what they say has to be what is done, which is to train the last turn alone.

What else there is, such as `tool_calls`, belongs to what was said, and no template here writes it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from data_schemas.rows import Role
from tasks.curation.readers.written_values import written_value
from tasks.curation.rows import BadRow

_LIST_OF_OBJECTS = re.compile(r"\s*\[\s*\{")
# "[{'role': 'user', 'content': 'Hi'}\n {'role': ...", an array of numpy without commas
_UNREAD_TURNS = re.compile(r"""\s*\[\s*\{\s*["'](?:role|from|content|value)["']\s*:""")
_SPEAKERS = {
    "human": Role.USER,
    "gpt": Role.ASSISTANT,
    "developer": Role.SYSTEM,
    "model": Role.ASSISTANT,
}
"""Names in ShareGPT's layout, which uses ours too; in OpenAI's since 2024; and in Gemini's."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Names of a thought: vLLM before 0.11 and DeepSeek; vLLM and OpenRouter; Ollama."""
_DETAILS = "reasoning_details"
"""The same thought in parts, beside it or alone (OpenRouter)."""
_TEXT_PARTS = ("text", "input_text", "output_text")
"""Kinds of parts that are text; the latter two in OpenAI's Responses."""
_THOUGHT_PARTS = ("thinking", "reasoning")
"""Kinds of parts of a thought: `thinking` has it under that name (Anthropic), others as `text`."""
_TRAINED = ("weight", "loss")
"""Whether a turn is trained: 1 or 0 in fine-tuning at OpenAI, and a boolean in others' rows."""
_ADVICE = {
    "tool_calls": "a call is trained as the text that the model writes: put it into content",
    "function_call": "a call is trained as the text that the model writes: put it into content",
    "refusal": "put it into content, or leave the row out",
}


@dataclass(frozen=True, slots=True)
class Chat:
    """The turns of a chat, and the last one if it is the assistant's."""

    messages: list[dict[str, object]]
    """As `Message`, not yet validated: without the last turn if that is the response."""
    response: object = None
    """Its content; None = the chat ends with another's turn."""
    thought: str | None = None
    """None = the last turn has no key of a thought."""


def turns_of(cell: object) -> object:
    """Return the turns that a cell of a CSV file writes as JSON or as Python; else the cell."""
    if isinstance(cell, str) and _LIST_OF_OBJECTS.match(cell):
        return written_value(cell, longest=len(cell))
    return cell


def check_not_turns(cell: object, name: str) -> None:
    """Refuse what holds turns and would be asked as the text that it is.

    Args:
        cell: a cell that is no list of turns.
        name: of its column.

    Raises:
        BadRow: it is the text of a list that nothing reads, as numpy writes it, or an object around
            one.
    """
    if isinstance(cell, str) and _UNREAD_TURNS.match(cell):
        raise BadRow("bad_messages", f"{name} begins as a list of turns, and is no JSON")
    if isinstance(cell, Mapping):
        for key, value in cast("Mapping[str, object]", cell).items():
            first = next(iter(cast("list[object]", value)), None) if isinstance(value, list) else 0
            if isinstance(first, Mapping) and {"role", "from"} & first.keys():
                raise BadRow("bad_messages", f"{name} is no list of turns; {{{name}.{key}}} is one")


def read_chat(turns: object, name: str) -> Chat | None:
    """Read the turns of a column; None if it holds no list, nor one as JSON.

    Args:
        turns: the value of the column.
        name: of the column, for messages.

    Raises:
        BadRow: a turn is no object, has a key that is not read, or content that is no text, or its
            last one says that it is not to be trained.
    """
    if isinstance(turns, str) and isinstance(turns := turns_of(turns), str):
        turns = json.loads(turns)
    if not isinstance(turns, list):
        return None
    cells = [
        _object(turn, f"{name}.{place}") for place, turn in enumerate(cast("list[object]", turns))
    ]
    messages = [_message(turn, f"{name}.{place}") for place, turn in enumerate(cells)]
    is_shown = len(messages) > 1 and messages[-1].get("role") == Role.ASSISTANT
    for place, turn in enumerate(cells[:-1] if is_shown else cells):
        _check_untrained(turn, f"{name}.{place}")
    if not is_shown:
        return Chat(messages)
    where = f"{name}.{len(cells) - 1}"
    for key in _TRAINED:
        if not cells[-1].get(key, True):
            raise BadRow("not_trained", f"{where}.{key} is {cells[-1][key]!r}: leave out the turn")
    return Chat(messages[:-1], messages[-1].get("content"), _thought(cells[-1], where))


def _check_untrained(turn: Mapping[str, object], where: str) -> None:
    """Refuse a turn before the response that has to be trained, or a thought that would vanish.

    Raises:
        BadRow: names the key.
    """
    thought = "content" if _thought_parts(turn) else ""
    if key := next((key for key in (*_TRAINED, *_THOUGHTS, _DETAILS) if turn.get(key)), thought):
        raise _unread(where, key, "the last turn alone is trained, with its thought")


def _object(turn: object, where: str) -> dict[str, object]:
    """Return the keys of a turn that are there."""
    if not isinstance(turn, Mapping):
        raise BadRow("bad_messages", f"{where}: a turn is {type(turn).__name__}, not an object")
    keys = cast("Mapping[str, object]", turn)
    return {key: value for key, value in keys.items() if value not in (None, [], {})}


def _message(turn: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the fields of a Message.

    Raises:
        BadRow: names what is not read.
    """
    rest = dict(turn)
    speaker, text = ("from", "value") if "from" in rest else ("role", "content")
    if text not in rest and "parts" in rest:
        text = "parts"
    role, content = rest.pop(speaker, None), rest.pop(text, None)
    if isinstance(role, str):
        role = _SPEAKERS.get(role, role)
    if role not in list(Role):
        detail = f"{where}.{speaker} is {role!r}; a turn is of {', '.join(Role)}"
        raise BadRow("bad_role", f"{detail}, or of {', '.join(_SPEAKERS)}")
    for key in _TRAINED:
        if rest.pop(key, 0) not in (0, 1):
            raise _unread(where, key, f"it is {turn[key]!r}, and a turn is trained or not")
    if role == Role.ASSISTANT:
        for key in (*_THOUGHTS, _DETAILS):
            rest.pop(key, None)
    if rest:
        key = next((key for key in _ADVICE if key in rest), min(rest))
        raise _unread(where, key, _ADVICE.get(key, "remove it, or write it into content"))
    fields = {"role": role, "content": _text(content, f"{where}.{text}")}
    return {key: value for key, value in fields.items() if value is not None}


def _text(content: object, where: str) -> object:
    """Join the parts of a content, which is a text already or a list of parts.

    Lines divide them, as vLLM joins parts for a template that takes texts. The parts of a thought
    are not among them.
    """
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return content
    texts: list[str] = []
    for place, part in enumerate(cast("list[object]", content)):
        if isinstance(part, str):
            texts.append(part)
            continue
        here = f"{where}.{place}"
        cells = _object(part, here)
        if cells.get("type") in _THOUGHT_PARTS:
            continue
        kind = cells.pop("type", "text")
        text = cells.pop("text", None)
        other = min(cells, default="") if kind in _TEXT_PARTS else str(kind)
        if other or not isinstance(text, str):
            detail = f"{here} is {other or 'no text'!r}, and every engine here takes text only"
            raise BadRow("not_text", detail)
        texts.append(text)
    return "\n".join(texts)


def _thought_parts(turn: Mapping[str, object]) -> dict[str, object]:
    """Return the thought that parts of a content hold, under a name of its own; often none."""
    content = turn.get("content", turn.get("value"))
    texts = [
        cells.get("thinking", cells.get("text"))
        for part in (cast("list[object]", content) if isinstance(content, list) else [])
        if isinstance(part, Mapping)
        and (cells := cast("Mapping[str, object]", part)).get("type") in _THOUGHT_PARTS
    ]
    if not texts:
        return {}
    is_text = all(isinstance(text, str) for text in texts)
    return {"content": "".join(map(str, texts)) if is_text else texts}


def _thought(turn: Mapping[str, object], where: str) -> str | None:
    """Return the thought of a turn; None if no key has one.

    Raises:
        BadRow: it is no text, or two keys disagree.
    """
    thoughts = {key: turn[key] for key in _THOUGHTS if key in turn}
    if _DETAILS in turn:
        thoughts[_DETAILS] = _joined_details(turn[_DETAILS], where)
    thoughts |= _thought_parts(turn)
    if wrong := next((key for key, value in thoughts.items() if not isinstance(value, str)), ""):
        raise _unread(where, wrong, f"it is {type(thoughts[wrong]).__name__}, not text")
    texts = cast("dict[str, str]", thoughts)
    if len({text.strip() for text in texts.values()}) > 1:
        raise BadRow("two_thoughts", f"{where}: {' and '.join(texts)} differ; keep one")
    return next(iter(texts.values()), None)


def _joined_details(details: object, where: str) -> str:
    """Join the parts of a thought, all of which have to be text."""
    texts: list[str] = []
    for part in cast("list[object]", details) if isinstance(details, list) else [details]:
        cells = cast("Mapping[str, object]", part) if isinstance(part, Mapping) else {}
        text = cells.get("text")
        if cells.get("type") != "reasoning.text" or not isinstance(text, str):
            detail = f"a part is {cells.get('type', part)!r}, which is no text of a thought"
            raise _unread(where, _DETAILS, detail)
        texts.append(text)
    return "".join(texts)


def _unread(where: str, key: str, advice: str) -> BadRow:
    return BadRow("unread_key", f"{where}.{key} is not read: {advice}")
