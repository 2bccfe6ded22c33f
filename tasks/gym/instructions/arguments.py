"""The parts of a checkable instruction and the readers of its arguments.

Arguments are read before the response: a missing or unknown argument, or one of the wrong kind,
makes the gold invalid for every response. Relations are words in the languages of the data sets.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.errors import DataError

Arguments = Mapping[str, Any]
"""Argument names and the values that their readers returned."""
Check = Callable[[str, Arguments], bool | None]
"""True if the response follows the instruction; None if undecided."""
Reader = Callable[[object], Any]
"""Raises DataError if the value has the wrong kind."""
Relation = Callable[[int, int], bool]
"""Compares a count with the number asked for."""

RELATIONS: dict[str, Relation] = {
    "at least": operator.ge,
    "less than": operator.lt,
    "at most": operator.le,
    "more than": operator.gt,
    "exactly": operator.eq,
    "al menos": operator.ge,
    "como máximo": operator.le,
    "au moins": operator.ge,
    "moins de": operator.lt,
    "以上": operator.ge,
    "未満": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of instruction: its check, its arguments and what it means."""

    check: Check
    arguments: Mapping[str, Reader]
    meaning: str
    undecided: str = "language_undecided"
    """The reason of an abstention if the check is undecided."""

    def read(self, values: Mapping[str, object]) -> Arguments:
        """Read the arguments; nulls count as absent.

        Raises:
            DataError: one is missing, unknown or not of its kind.
        """
        present = {name: value for name, value in values.items() if value is not None}
        unknown = sorted(present.keys() - self.arguments.keys())
        if unknown:
            raise DataError(f"takes no argument {', '.join(unknown)}")
        results: dict[str, Any] = {}
        for name, read in self.arguments.items():
            try:
                results[name] = read(present.get(name))
            except DataError as error:
                raise DataError(f"{name} is {present.get(name)!r}, needs {error}") from error
        return results


def whole(value: object) -> int:
    """Read a whole number from 0; 3.0 is accepted, True is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError("a whole number from 0")
    if not value >= 0 or (isinstance(value, float) and not value.is_integer()):
        raise DataError("a whole number from 0")
    return int(value)


def phrase(value: object) -> str:
    """Read a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise DataError("a text")
    return value


def letter(value: object) -> str:
    """Read one character."""
    if not isinstance(value, str) or len(value.strip()) != 1:
        raise DataError("one character")
    return value.strip()


def phrases(value: object) -> tuple[str, ...]:
    """Read a list of texts with at least one text."""
    if not isinstance(value, list) or not value:
        raise DataError("a list of texts")
    return tuple(phrase(entry) for entry in value)


def spellings(value: object) -> dict[str, str]:
    """Read an object of texts with at least one entry."""
    if not isinstance(value, dict) or not value:
        raise DataError("an object of texts")
    return {phrase(key): phrase(entry) for key, entry in value.items()}


def relation(value: object) -> Relation:
    """Read a comparison in words."""
    if not isinstance(value, str) or value not in RELATIONS:
        raise DataError(f"one of {', '.join(RELATIONS)}")
    return RELATIONS[value]


def one_of(*allowed: str) -> Reader:
    """Make a reader that accepts one of a few texts."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise DataError(f"one of {', '.join(allowed)}")
        return value

    return read


def check_count(count: Callable[[str], int], bound: str, compare: str = "relation") -> Check:
    """Make a check that compares a count with the arguments of these names."""
    return lambda text, arguments: arguments[compare](count(text), arguments[bound])


def between(low: int, high: int, compare: Relation, limit: int) -> bool | None:
    """Compare a count known to be in [low, high] with a limit; None if undecided."""
    if compare is operator.eq and low != high:
        return None if low <= limit <= high else False
    ends = {compare(low, limit), compare(high, limit)}
    return ends.pop() if len(ends) == 1 else None
