"""Problems whose answer is a call, in the form that the base model's chat template writes.

The adapters ask for calls in a form of this project. A base whose template writes calls is served
with the tool parser of that form, which reads no other: it is asked in its own form, with its own
block of tools, and the verifier pays that form only.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from data_schemas.rows import Message, Problem, Role
from tasks.curation.adapters.tools import CALL_FORMAT, NO_CALL
from tasks.curation.items import Item
from tasks.gym.tools.forms import FORMS
from tasks.models import chat_trial
from tasks.store.files import canonical_json

_JSON_TYPES = {"dict": "object", "float": "number", "double": "number", "tuple": "array"}
"""BFCL's names of types (Python's) in JSON schema; 'any' is no type there."""


def in_form(items: Sequence[Item], base_model: Path) -> list[Item]:
    """Ask for calls in the form of a model; items stay as they are if its template writes none."""
    form = _form_of(base_model)
    if not form:
        return list(items)
    return [
        replace(item, record=_rewritten(item.record, form, base_model))
        if isinstance(item.record, Problem)
        else item
        for item in items
    ]


@functools.cache
def _form_of(base_model: Path) -> str:
    return chat_trial.call_form(base_model)


def _rewritten(problem: Problem, form: str, base_model: Path) -> Problem:
    first = problem.messages[0]
    if problem.verifier != "bfcl_calls" or CALL_FORMAT not in first.content:
        return problem
    gold = json.loads(problem.answer)
    own, _, listing = first.content.partition(CALL_FORMAT)
    question, later = problem.messages[1], problem.messages[2:]
    system = f"{own}{NO_CALL}"
    # Of the prompt, not of the gold, whose keys are sorted: servers keep the order of a request.
    tools = [_tool(json.loads(line)) for line in listing.splitlines()]
    texts = chat_trial.with_tools(base_model, system, question.content, tools)
    if texts is None:
        texts = f"{system}\n{FORMS[form].request}\nFunctions:\n{listing}", question.content
    turns = (
        Message(role=Role.SYSTEM, content=texts[0]),
        Message(role=question.role, content=texts[1]),
        *later,
    )
    answer = canonical_json({**gold, "form": form}).decode()
    return problem.model_copy(update={"messages": turns, "answer": answer})


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": _in_json_schema(function)}


def _in_json_schema(value: Any) -> Any:
    """Return a description of BFCL with the types of JSON schema, at every depth."""
    if isinstance(value, list):
        return [_in_json_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    result = {name: _in_json_schema(one) for name, one in value.items()}
    if isinstance(kind, str):
        result["type"] = _JSON_TYPES.get(kind.lower(), kind)
        if kind.lower() == "any":
            del result["type"]
    return result
