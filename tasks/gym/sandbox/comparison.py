"""Comparison of a value or a printed text with the expected one. Standard library only.

Text is compared line by line, each split at white space; trailing empty lines do not count. Values
are compared with their types, as JSON knows them: a tuple is a list, 1 is not True, and a whole
number is a float where a float is expected, not the other way round. Floats may differ by
`TOLERANCE`, relative to the expected value, or absolutely below 1.
"""

import math

TOLERANCE = 1e-6
"""The usual tolerance of contest problems."""
_MAX_NUMBER_CHARACTERS = 400
"""The longest float written out has 309 digits before the point."""


def same_text(expected: str, printed: str) -> bool:
    """True if both have the same words in the same lines."""
    expected_lines, printed_lines = _lines(expected), _lines(printed)
    return len(expected_lines) == len(printed_lines) and all(
        len(one) == len(other) and all(map(_same_word, one, other))
        for one, other in zip(expected_lines, printed_lines, strict=True)
    )


def same_value(expected: object, value: object) -> bool:  # noqa: PLR0911 - a table
    """True if a value made of built-in types is the expected JSON value."""
    match expected:
        case bool() | None:
            return value is expected
        case int():
            return type(value) is int and value == expected
        case float():
            return type(value) in (int, float) and _close(expected, value)
        case str():
            return type(value) is str and value == expected
        case list():
            return (
                isinstance(value, list | tuple)
                and len(value) == len(expected)
                and all(map(same_value, expected, value))
            )
        case dict():
            if not isinstance(value, dict):
                return False
            items = {_key(key): item for key, item in value.items()}
            return (
                len(items) == len(value)
                and items.keys() == expected.keys()
                and all(same_value(item, items[key]) for key, item in expected.items())
            )
        case _:
            return False


def _lines(text: str) -> list[list[str]]:
    lines = [line.split() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_word(expected: str, word: str) -> bool:
    if expected == word:
        return True
    # Integers are compared exactly; only numbers written as floats have a tolerance.
    if not any(mark in expected for mark in ".eE") or len(word) > _MAX_NUMBER_CHARACTERS:
        return False
    try:
        return _close(float(expected), float(word))
    except (ValueError, OverflowError):
        return False


def _close(expected: float, value: object) -> bool:
    try:
        return math.isclose(float(str(value)), expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except (ValueError, OverflowError):
        return False


def _key(key: object) -> object:
    # JSON keys are text.
    return str(key) if type(key) is int else key
