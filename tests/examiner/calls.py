"""Classes of tool calls: the allowed calls in another form, and calls that are not allowed.

A question's facts are concrete calls that are right. For BFCL they are drawn from the allowed
values; a changed value is then compared with every allowed one under BFCL's own folding of texts.
"""

import json
import random
import re
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from tests.examiner.case import AnswerClass, Question

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Calls:
    """Right calls, and what else would be right."""

    calls: tuple[Call, ...]
    allowed: tuple[dict[str, list[Any]], ...] = ()
    """BFCL: for each call, the allowed values of each parameter; empty: only the value itself."""
    required: tuple[tuple[str, ...], ...] = ()
    types: tuple[dict[str, str], ...] = field(default=())

    def options(self, place: int, name: str) -> list[Any]:
        """Return every value a parameter may take."""
        value = self.calls[place][1][name]
        return self.allowed[place].get(name, [value]) if self.allowed else [value]


def concrete(options: Any, source: random.Random) -> Any:
    """Draw one of BFCL's allowed values; inside objects every entry is again a list of them."""
    if isinstance(options, dict):
        return {
            key: concrete(source.choice(kept), source)
            for key, allowed in options.items()
            for kept in [
                [o for o in (allowed if isinstance(allowed, list) else [allowed]) if o != ""]
            ]
            if kept
        }
    if isinstance(options, list):
        return [concrete(item, source) for item in options]
    return options


def json_lines(question: Question, source: random.Random) -> str:
    return _lines(question.facts.calls, source)


def tagged(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    return f"<tool_call>\n{_lines(facts.calls, source)}\n</tool_call>"


def thinking(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    draft = _lines((("wrong_tool", {"a": 1}),), source)
    return f"<think>{draft} would not fit.</think>\n{_lines(facts.calls, source)}"


def python_calls(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    names = [name for _, parameters in facts.calls for name in parameters]
    if not facts.allowed or any(not n.isidentifier() or iskeyword(n) for n in names):
        return None
    form = source.choice(("[{}]", "```python\n[{}]\n```", " [ {} ] "))
    return form.format(", ".join(_python(call, source) for call in facts.calls))


def calls_reordered(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    if len(facts.calls) < 2:
        return None
    return _lines(tuple(source.sample(facts.calls, len(facts.calls))), source)


def other_allowed(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    if not facts.allowed:
        return None
    place = source.randrange(len(facts.calls))
    name, parameters = facts.calls[place]
    drawn = {
        key: concrete(source.choice(kept), source)
        for key, options in facts.allowed[place].items()
        for kept in [[option for option in options if option != ""]]
        if kept and ("" not in options or source.random() < 0.5)
    }
    if drawn == parameters or any(key not in drawn for key in facts.required[place]):
        return None
    calls = [*facts.calls]
    calls[place] = (name, drawn)
    return _lines(tuple(calls), source)


def whole_for_float(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    spots = [
        (place, key)
        for place, (_, parameters) in enumerate(facts.calls)
        for key, value in parameters.items()
        if isinstance(value, float)
        and value.is_integer()
        and facts.types
        and facts.types[place].get(key) == "float"
    ]
    if not spots:
        return None
    place, key = source.choice(spots)
    return _with(
        facts, place, {**facts.calls[place][1], key: int(facts.calls[place][1][key])}, source
    )


def name_changed(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    place = source.randrange(len(facts.calls))
    name, parameters = facts.calls[place]
    changed = source.choice((f"{name}_2", f"get_{name}", name[:-1] or "f"))
    return _lines((*facts.calls[:place], (changed, parameters), *facts.calls[place + 1 :]), source)


def value_changed(question: Question, source: random.Random) -> str | None:
    return _changed(question.facts, source, _another)


def type_changed(question: Question, source: random.Random) -> str | None:
    """Write a number as text; never a text as a number, which some sets allow."""
    return _changed(question.facts, source, lambda v, _: str(v) if type(v) in (int, float) else v)


def listed(question: Question, source: random.Random) -> str | None:
    return _changed(question.facts, source, lambda v, _: v if isinstance(v, list | dict) else [v])


def parameter_missing(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    spots = [
        (place, key)
        for place, (_, parameters) in enumerate(facts.calls)
        for key in parameters
        if "" not in facts.options(place, key)
    ]
    if not spots:
        return None
    place, key = source.choice(spots)
    kept = {k: v for k, v in facts.calls[place][1].items() if k != key}
    return _with(facts, place, kept, source)


def parameter_added(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    place = source.randrange(len(facts.calls))
    return _with(facts, place, {**facts.calls[place][1], "zz_extra": 1}, source)


def parameter_renamed(question: Question, source: random.Random) -> str | None:
    facts: Calls = question.facts
    place = source.randrange(len(facts.calls))
    parameters = facts.calls[place][1]
    if not parameters:
        return None
    key = source.choice(list(parameters))
    return _with(
        facts, place, {f"{k}_z" if k == key else k: v for k, v in parameters.items()}, source
    )


def duplicate_key(question: Question, source: random.Random) -> str | None:
    """Give one argument twice, with the right value first or last."""
    facts: Calls = question.facts
    name, parameters = facts.calls[0]
    if not parameters or len(facts.calls) > 1:
        return None
    key = source.choice(list(parameters))
    other = _another(parameters[key], source)
    if _is_allowed(other, facts.options(0, key)):
        return None
    twice = [(key, parameters[key]), (key, other)]
    source.shuffle(twice)
    pairs = [*twice, *((k, v) for k, v in parameters.items() if k != key)]
    if (
        facts.allowed
        and source.random() < 0.5
        and all(k.isidentifier() and not iskeyword(k) for k in parameters)
    ):
        return f"[{name}({', '.join(f'{k}={v!r}' for k, v in pairs)})]"
    inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs)
    return f'{{"name": {json.dumps(name)}, "parameters": {{{inner}}}}}'


def call_missing(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    place = source.randrange(len(facts.calls))
    left = (*facts.calls[:place], *facts.calls[place + 1 :])
    return _lines(left, source) if left else "No call is needed."


def call_added(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    extra = source.choice((("extra_tool", {"q": 1}), facts.calls[0]))
    return _lines((*facts.calls, extra), source)


def only_talked(question: Question, source: random.Random) -> str:
    facts: Calls = question.facts
    text = _lines(facts.calls, source)
    forms = (
        f"I would not call this: {text}",
        f"<think>{text}</think>",
        f"<tool_call>{text}",
        f"Calling {facts.calls[0][0]} now.",
    )
    return source.choice(forms)


def no_call(question: Question, source: random.Random) -> str:
    """Answer in words where no call fits."""
    del question
    return source.choice(("None of the functions fits.", "I cannot help with that here.", "No."))


def needless_call(question: Question, source: random.Random) -> str:
    name = question.problem.answer.partition('"name":"')[2].partition('"')[0] or "search"
    return source.choice((f"[{name}()]", f'{{"name": "{name}", "parameters": {{}}}}'))


def _lines(calls: tuple[Call, ...], source: random.Random) -> str:
    rows = []
    for name, parameters in calls:
        keys = list(parameters)
        source.shuffle(keys)
        call = {"name": name, "parameters": {key: parameters[key] for key in keys}}
        rows.append(json.dumps(call, ensure_ascii=source.random() < 0.5))
    return "\n".join(rows)


def _python(call: Call, source: random.Random) -> str:
    keys = list(call[1])
    source.shuffle(keys)
    return f"{call[0]}({', '.join(f'{key}={call[1][key]!r}' for key in keys)})"


def _with(facts: Calls, place: int, parameters: dict[str, Any], source: random.Random) -> str:
    calls = [*facts.calls]
    calls[place] = (calls[place][0], parameters)
    return _lines(tuple(calls), source)


def _changed(facts: Calls, source: random.Random, change: Any) -> str | None:
    """Change one value; None if it may still be an allowed one."""
    spots = [(place, key) for place, (_, values) in enumerate(facts.calls) for key in values]
    if not spots:
        return None
    place, key = source.choice(spots)
    value = facts.calls[place][1][key]
    other = change(value, source)
    if (type(other) is type(value) and other == value) or _is_allowed(
        other, facts.options(place, key)
    ):
        return None
    return _with(facts, place, {**facts.calls[place][1], key: other}, source)


def _another(value: Any, source: random.Random) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + source.choice((1, -1, 10))
        case str():
            return f"{value} zq" if value else "zq"
        case list():
            return [*value, value[0] if value else 1]
        case dict():
            return {**value, "zz_extra": 1}
        case _:
            return "zq"


def _is_allowed(value: Any, options: list[Any]) -> bool:
    return any(
        (type(value) is type(option) and _folded(value) == _folded(option)) or value == option == ""
        for option in options
    ) or (isinstance(value, int | float) and value in options)


def _folded(value: Any) -> Any:
    """BFCL compares texts without case and some punctuation."""
    return re.sub(r"[ ,./\-_*^'\"]", "", value).lower() if isinstance(value, str) else value


_JSON = '{"name": "f", "parameters": {"a": 1}}'
RIGHT = (
    AnswerClass(
        "json_lines",
        True,
        "one JSON object per line, keys in any order",
        f"f(a=1) -> {_JSON}",
        json_lines,
    ),
    AnswerClass(
        "tagged",
        True,
        "within <tool_call> tags",
        f"f(a=1) -> <tool_call>{_JSON}</tool_call>",
        tagged,
    ),
    AnswerClass(
        "thinking",
        True,
        "another call within the thinking",
        f"f(a=1) -> <think>g()</think> {_JSON}",
        thinking,
    ),
    AnswerClass(
        "python_calls",
        True,
        "Python syntax, where the verifier reads it",
        "f(a=1) -> [f(a=1)]",
        python_calls,
    ),
    AnswerClass(
        "calls_reordered",
        True,
        "several calls in another order",
        "f(), g() -> g(), f()",
        calls_reordered,
    ),
    AnswerClass(
        "other_allowed",
        True,
        "other allowed values; optional parameters left out",
        "unit 'm' or '' -> left out",
        other_allowed,
    ),
    AnswerClass(
        "whole_for_float", True, "an integer where the type is float", "5.0 -> 5", whole_for_float
    ),
)
WRONG = (
    AnswerClass("name_changed", False, "another function", "f -> f_2", name_changed),
    AnswerClass("value_changed", False, "a value that is not allowed", "a=1 -> a=2", value_changed),
    AnswerClass("type_changed", False, "a number as text", "a=1 -> a='1'", type_changed),
    AnswerClass("listed", False, "a value within a list", "a=1 -> a=[1]", listed),
    AnswerClass(
        "parameter_missing",
        False,
        "a needed parameter left out",
        "f(a=1) -> f()",
        parameter_missing,
    ),
    AnswerClass(
        "parameter_added",
        False,
        "a parameter nobody asked for",
        "f(a=1) -> f(a=1, zz_extra=1)",
        parameter_added,
    ),
    AnswerClass(
        "parameter_renamed",
        False,
        "a parameter with another name",
        "f(a=1) -> f(a_z=1)",
        parameter_renamed,
    ),
    AnswerClass(
        "duplicate_key",
        False,
        "a parameter twice, with two values",
        "f(a=4) -> f(a=4, a=5)",
        duplicate_key,
    ),
    AnswerClass("call_missing", False, "a call left out", "f(), g() -> f()", call_missing),
    AnswerClass("call_added", False, "one call too many", "f() -> f(), f()", call_added),
    AnswerClass(
        "only_talked",
        False,
        "the calls in a refusal, in the thinking, or in words",
        "f() -> Calling f now.",
        only_talked,
    ),
)
BFCL_ONLY = ("python_calls", "other_allowed", "whole_for_float")
"""Classes that need allowed values or types."""
SILENT = (
    AnswerClass(
        "no_call", True, "words, where no function fits", "-> None of the functions fits.", no_call
    ),
    AnswerClass(
        "needless_call", False, "a call, where no function fits", "-> [f()]", needless_call
    ),
)
