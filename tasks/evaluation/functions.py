"""Functions that a chat over HTTP may offer and call, in the form of OpenAI's interface.

A request's functions and calls become what the chat template writes, and the calls in a response
become `tool_calls`, as vLLM 0.30 does with the tool parser of the template's form. What that parser
reads otherwise in a stream than in a whole response is text here (`tasks/gym/tools/forms.py`).
Differs: blanks at the end of the text before a call stay; `qwen3_xml` of vLLM drops them.
"""

import json
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Role
from tasks.errors import DataError, SettingsError
from tasks.gym.tools.forms import FORMS

MOST_FUNCTIONS = 128
"""As many as OpenAI's interface takes."""
STRING = "string"
NO_FORM = (
    "tools: the chat template of this model writes no calls of functions in a form that a server "
    f"reads ({', '.join(FORMS)}); leave tools out"
)


def _not_strict(value: bool | None) -> None:
    if value:
        raise ValueError("arguments are not held to a schema: leave it out, or false")


Text = Annotated[
    str,
    BeforeValidator(
        lambda value: "" if value is None else value, json_schema_input_type=str | None
    ),
]
"""Clients write null for what a turn does not have."""


class FunctionOffer(FrozenModel):
    """A function, described."""

    name: str = Field(min_length=1, max_length=256)
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON schema."""
    strict: Annotated[bool | None, AfterValidator(_not_strict)] = Field(
        default=None, strict=True, json_schema_extra={"enum": [False, None]}
    )


class Tool(FrozenModel):
    """A function on offer."""

    type: Literal["function"] = "function"
    function: FunctionOffer


class CalledFunction(FrozenModel):
    """The function of a call."""

    name: str = Field(min_length=1, max_length=256)
    arguments: str
    """An object of JSON."""


class AssistantCall(FrozenModel):
    """A call that the assistant made."""

    id: Text = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatTurn(FrozenModel):
    """A turn of a request; the assistant's may be sent back as it was received."""

    role: Role
    content: Text = ""
    reasoning: Text = ""
    tool_calls: Annotated[
        tuple[AssistantCall, ...],
        BeforeValidator(
            lambda value: () if value is None else value,
            json_schema_input_type=tuple[AssistantCall, ...] | None,
        ),
    ] = ()
    tool_call_id: Text = ""
    """Which call a turn of a tool answers."""
    name: Text = ""

    def for_template(self) -> dict[str, Any]:
        """Return what a chat template is given of a turn, as vLLM gives it.

        Raises:
            DataError: the arguments of a call are no object of JSON.
        """
        turn: dict[str, Any] = {"role": self.role.value, "content": self.content}
        if self.reasoning:
            # Templates read one name or the other.
            turn |= {"reasoning": self.reasoning, "reasoning_content": self.reasoning}
        if self.tool_calls:
            turn["tool_calls"] = [_for_template(one) for one in self.tool_calls]
        turn |= {
            key: value
            for key, value in (("tool_call_id", self.tool_call_id), ("name", self.name))
            if value
        }
        return turn


def _for_template(call: AssistantCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.function.arguments or "{}")
    except (ValueError, RecursionError) as error:
        arguments = error
    if not isinstance(arguments, dict):
        raise DataError(
            f"the arguments of a call of {call.function.name!r} are no object of JSON: "
            f"{call.function.arguments[:60]!r}"
        )
    function = {"name": call.function.name, "arguments": arguments}
    return {"id": call.id, "type": call.type, "function": function}


def offer_of(tools: Sequence[Tool], form: str) -> list[dict[str, Any]]:
    """Return what a chat template is given of the functions on offer.

    Raises:
        SettingsError: the template writes no calls.
    """
    if tools and not form:
        raise SettingsError(NO_FORM)
    return [
        {"type": one.type, "function": one.function.model_dump(exclude={"strict"})} for one in tools
    ]


def calls_in(
    content: str, tools: Sequence[Tool], form: str, *, several: bool
) -> tuple[str | None, list[dict[str, Any]]]:
    """Split what follows the thought into text and calls.

    Args:
        content: of the response.
        tools: on offer; a call of another function is a call as well, as it is to vLLM.
        form: of the chat template.
        several: or the first call only.

    Returns:
        The text before the first call, None if there is none, and the calls as a response has them;
        the whole content and no call where the form has none.
    """
    strings = {
        (one.function.name, name)
        for one in tools
        for name, schema in _properties(one).items()
        if isinstance(schema, dict) and schema.get("type", STRING) == STRING
    }
    calls = FORMS[form].parse(content, strings)
    if not calls:
        return content, []
    begin = FORMS[form].begin
    before = content.partition(begin)[0] if begin else ""
    return before if before.strip() else None, [
        {
            "id": f"chatcmpl-tool-{uuid.uuid4().hex[:16]}",
            "type": "function",
            "function": {
                "name": one.name,
                "arguments": json.dumps(one.parameters, ensure_ascii=False),
            },
        }
        for one in (calls if several else calls[:1])
    ]


def _properties(tool: Tool) -> dict[str, Any]:
    value = (tool.function.parameters or {}).get("properties")
    return value if isinstance(value, dict) else {}
