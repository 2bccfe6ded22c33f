"""Function calls in C++ and Java: a harness that makes the call and prints its value as JSON.

C++: a switch over all calls with their arguments as literals, converted to the function's own
parameter types; the input is the number of the call. Java: reflection; the input is the call. Only
the last printed line counts; a program may print other lines before. Expected values stay with the
caller.

Not supported: functions that return nothing, overloaded C++ functions and templates.
"""

import json
from collections.abc import Sequence

from tasks.gym.sandbox.comparison import same_value
from tasks.gym.sandbox.toolchains import Language, classes, driver

_INT64 = 2**63


def call_harness(
    language: Language, source: str, function: str, calls: Sequence[Sequence[object]]
) -> tuple[str, list[str]]:
    """Return the harness for C++ or Java, and one input per call."""
    owner, _, name = function.rpartition(".")
    if language is Language.CPP:
        return _cpp(owner, name, calls), [str(index) for index in range(len(calls))]
    order = [owner] if owner else classes(source)
    inputs = [
        json.dumps({"classes": order, "function": name, "args": args}, separators=(",", ":"))
        for args in calls
    ]
    return driver("Call.java"), inputs


def check_printed(expected: object, output: str) -> str:
    """Return why the last line of an output is not the expected value; empty if it is."""
    line = output.rstrip().rpartition("\n")[2]
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return f"no value printed: {line[:60]!r}"
    if same_value(expected, value):
        return ""
    return f"{line[:60]} instead of {json.dumps(expected)[:60]}"


def _cpp(owner: str, name: str, calls: Sequence[Sequence[object]]) -> str:
    pointer = f"&{owner}::{name}" if owner else f"&{name}"
    cases = []
    for index, args in enumerate(calls):
        parameters = [
            f"call::parameter<decltype({pointer}), {number}> a{number} = {_literal(value)};"
            for number, value in enumerate(args)
        ]
        names = ", ".join(f"a{number}" for number in range(len(args)))
        called = f"{owner}().{name}({names})" if owner else f"{name}({names})"
        cases.append(f"case {index}: {{ {' '.join(parameters)} call::print({called}); break; }}")
    body = "\n".join(cases)
    return (
        '#include "call.hpp"\n'
        "int main() { int number; if (!(std::cin >> number)) return 1; switch (number) {\n"
        f"{body}\n}} return 0; }}\n"
    )


def _literal(value: object) -> str:  # noqa: PLR0911 - a table
    """Write a JSON value as a C++ initialiser for any parameter type."""
    match value:
        case None:
            return "{}"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -_INT64 < value < _INT64 else f"{value}ULL"
        case float():
            return repr(value)
        case str():
            return _quoted(value)
        case dict():
            items = (f"{{{_quoted(str(key))}, {_literal(item)}}}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
        case list() | tuple():
            return f"{{{', '.join(map(_literal, value))}}}"
        case _:
            raise TypeError(f"{value!r} is not JSON")


def _quoted(text: str) -> str:
    safe = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{"".join(safe)}"'
