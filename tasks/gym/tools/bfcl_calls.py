"""Score whether all calls have an allowed form (Berkeley Function Calling Leaderboard, AST).

Gold: {"calls": [{"name": "f", "parameters": {"a": [allowed, ...]}}], "functions": [...]}. "" among
the allowed values makes a parameter optional; no calls means that nothing must be called. With
{"case_matters": true} strings keep their case. A response is Python call syntax,
`[f(a=1), g.h(b="x")]`, or one JSON object per line; with {"form": ...} what `forms` says.
Differs: parallel calls are matched by optimal assignment, not greedily. An argument may have the
name of a Python keyword (Java's `from`). A repeated argument or key makes a call unreadable;
Python and JSON would keep the last one. Strings of Java and JavaScript keep their case: they hold
names and code, in which `mapArea` is not `MapArea`. Where nothing must be called, a call that
cannot be read is one too: in prose, in another form of JSON, or without literals.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.protocol import Gold, verify_answer
from tasks.gym.tools.forms import FORMS, calls_while_thinking, served_part
from tasks.gym.tools.python_calls import parse_python_calls
from tasks.gym.tools.tool_calls import AT_THE_TAG, CALL_IN_THOUGHT, looks_like_call, parse_calls

Fold: TypeAlias = Callable[[str], str]
"""Maps the spellings that BFCL takes as equal to one."""
OPTIONAL = ""
_LISTED = re.compile(r"\[\s*[A-Za-z_][\w.]{0,99}\(\s*(?:\w+\s*=(?!=)|\))")
"""A call in the brackets of the form that is asked for, of whatever function."""
_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "float": (int, float),
    "number": (int, float),
    "double": (int, float),
    "string": (str,),
    "char": (str,),
    "boolean": (bool,),
    "array": (list, tuple),
    "tuple": (list, tuple),
    "dict": (dict,),
    "object": (dict,),
}


class AllowedCall(BaseModel):
    """A call with the values each parameter may take."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    parameters: dict[str, list[Any]]


class BfclCalls(Gold):
    """The calls to make, in any order, and the functions on offer with their types."""

    calls: tuple[AllowedCall, ...] = Field(strict=False)
    functions: tuple[dict[str, Any], ...] = Field(default=(), strict=False)
    case_matters: bool = False
    form: Literal["", "hermes", "qwen3_xml", "llama3_json", "pythonic"] = ""


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every call is made once, in an allowed form, and no other is made; else 0."""
    return verify_answer(problem, response, BfclCalls, partial(_check, response=response))


def _predicted(gold: BfclCalls, answer: str, response: str) -> list[ToolCall] | None:
    if not gold.form:
        calls = parse_python_calls(answer)
        return parse_calls(answer) if calls is None else calls
    strings = {
        (str(function.get("name")), name)
        for function in gold.functions
        for name, doc in function.get("parameters", {}).get("properties", {}).items()
        if _TYPES.get(str(doc.get("type")).lower()) == (str,)
    }
    return FORMS[gold.form].parse(served_part(response), strings)


def _check(gold: BfclCalls, answer: str, *, response: str) -> Verdict:
    if calls_while_thinking(response):
        return scored(0.0, CALL_IN_THOUGHT, AT_THE_TAG)
    return _compare(gold, answer, _predicted(gold, answer, response))


def _compare(gold: BfclCalls, answer: str, calls: list[ToolCall] | None) -> Verdict:
    if not gold.calls:
        if calls or looks_like_call(answer) or _calls_in_python(gold, answer):
            return scored(0.0, "needless_call", calls[0].name if calls else answer[:80])
        return scored(1.0, "correct")
    if calls is None:
        return scored(0.0, "unparsable_calls", answer[:80])
    if len(calls) != len(gold.calls):
        return scored(0.0, "wrong_count", f"{len(calls)} calls, {len(gold.calls)} expected")
    docs = {str(function.get("name")): function for function in gold.functions}
    fold = _spaceless if gold.case_matters else _folded
    faults = [[_fault(allowed, call, docs, fold) for call in calls] for allowed in gold.calls]
    fits = np.array([[fault == "" for fault in row] for row in faults])
    for row, column in _assignment(fits):
        if not fits[row, column]:
            return scored(0.0, "wrong", f"{gold.calls[row].name}: {faults[row][column]}"[:200])
    return scored(1.0, "correct")


def _calls_in_python(gold: BfclCalls, answer: str) -> bool:
    """Say whether a text calls a function; `f()` and `f(base, height)` in prose only name it."""
    offered = [str(one["name"]) for one in gold.functions if one.get("name")]
    names = "|".join(re.escape(name).replace(r"\.", "[._]") for name in offered) or "(?!)"
    argument = r"\w+\s*=(?!=)"
    value = r"[\"'\d\[{*-]|(?:True|False|None)\b"
    called = (
        rf"(?<![\w.])(?:{names})(?:\(\s*(?:{argument}|{value})|[ \t]\(\s*{argument})|"
        rf"[\"'](?:{names})[\"']\s*:\s*\{{"
    )
    return _LISTED.search(answer) is not None or re.search(called, answer) is not None


def _assignment(fits: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Assign every allowed call to a different call, with as many matches as possible."""
    if len(fits) == 1:
        return [(0, 0)]
    from scipy.optimize import linear_sum_assignment  # takes a second to import

    rows, columns = linear_sum_assignment(fits, maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _fault(
    allowed: AllowedCall, call: ToolCall, docs: Mapping[str, dict[str, Any]], fold: Fold
) -> str:
    """Return why a call is not allowed; '' if it is."""
    if allowed.name != call.name:
        return f"called {call.name}"
    parameters = docs.get(allowed.name, {}).get("parameters", {})
    types = parameters.get("properties", {})
    for name in parameters.get("required", []):
        if name not in call.parameters:
            return f"required {name} is missing"
    for name, value in call.parameters.items():
        if name not in allowed.parameters:
            return f"{name} is not expected"
        # BFCL: a value of an allowed value's type passes, whatever the documentation says.
        options = [option for option in allowed.parameters[name] if option != OPTIONAL]
        if all(type(value) is not type(option) for option in options):
            fault = _type_fault(types.get(name, {}), value)
            if fault:
                return f"{name}: {fault}"
        if not any(_matches(option, value, fold) for option in allowed.parameters[name]):
            return f"{name} is {value!r}, allowed {allowed.parameters[name]!r}"
    missing = [
        name
        for name, options in allowed.parameters.items()
        if name not in call.parameters and OPTIONAL not in options
    ]
    return f"{missing[0]} is missing" if missing else ""


def _type_fault(doc: Mapping[str, Any], value: Any) -> str:
    expected = _TYPES.get(str(doc.get("type", "any")).lower())
    if expected is None:
        return ""
    is_bool = isinstance(value, bool)
    if not isinstance(value, expected) or is_bool != (bool in expected):
        return f"{value!r} is not of type {doc['type']}"
    items = doc.get("items")
    if isinstance(value, list | tuple) and isinstance(items, dict):
        return next((fault for fault in (_type_fault(items, item) for item in value) if fault), "")
    return ""


def _matches(option: Any, value: Any, fold: Fold) -> bool:
    """Compare one allowed value; in objects every entry is itself a list of allowed values."""
    match option, value:
        case (bool(), _) | (_, bool()):
            return option is value
        case (int() | float(), int() | float()):
            return option == value
        case str(), str():
            return fold(option) == fold(value)
        case (list() | tuple(), list() | tuple()):
            pairs = zip(option, value, strict=False)
            return len(option) == len(value) and all(_matches(*pair, fold) for pair in pairs)
        case dict(), dict():
            return _matches_object(option, value, fold)
        case _:
            return option is None and value is None


def _matches_object(option: dict[str, Any], value: dict[str, Any], fold: Fold) -> bool:
    def options(key: str) -> list[Any]:
        return option[key] if isinstance(option[key], list) else [option[key]]

    if any(key not in option for key in value):
        return False
    if any(key not in value and OPTIONAL not in options(key) for key in option):
        return False
    return all(any(_matches(item, value[key], fold) for item in options(key)) for key in value)


def _spaceless(text: str) -> str:
    return re.sub(r"[ ,./\-_*^]", "", text).replace("'", '"')


def _folded(text: str) -> str:
    return _spaceless(text).lower()
