r"""Reads what a gold answer is: one value, several in or out of order, a value with a unit.

A gold of no known shape is still a question: whatever repeats it is an equivalent, and nothing is
falsified.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.examiner.maths.exact import Exact, Unreadable, read

_UNIT = re.compile(
    r"(?P<value>.*?)(?:\\[ ,;!]|~|\s)*"
    r"(?:\\(?:text|mbox|textrm|mathrm)\s*\{\s*(?P<word>[a-zA-Z]+)\.?\s*\}"
    r"|(?P<degrees>\^\s*\{?\s*\\circ\s*\}?)|(?P<percent>\\%|%))\s*"
)
_MONEY = re.compile(r"\\?\$\s*(?P<value>[-\d][^$]*)")
_OPTION = re.compile(r"\(?\\(?:text|textbf|mathrm)\s*\{\s*\(?([A-H])\)?\s*\}\)?")
_BASE = re.compile(r"(\d+)_\{?([2-9]|1\d)\}?")
_BRACKETS = re.compile(r"(?:\\left)?\s*([(\[])(.*?)(?:\\right)?\s*([)\]])", re.DOTALL)
_MATRIX = re.compile(r"\\begin\{pmatrix\}(.*)\\end\{pmatrix\}", re.DOTALL)
_THOUSANDS = re.compile(r"(?<=\d)(?:,\\!|\{,\}|\\!,)(?=\d{3})")


class Shape(StrEnum):
    """How the values of a gold belong together."""

    VALUE = "value"
    POINT = "point"
    """(a, b): a tuple or an open interval; its order counts either way."""
    INTERVAL = "interval"
    """With at least one square bracket: an interval and nothing else."""
    LIST = "list"
    """Several solutions: their order is free."""
    MATRIX = "matrix"
    BASE = "base"
    """Digits in a named base."""
    OPTION = "option"
    """The letter of an option."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer as the examiner understands it."""

    text: str
    shape: Shape
    values: tuple[Exact, ...] = ()
    parts: tuple[str, ...] = ()
    """The values as written."""
    brackets: str = ""
    rows: int = 1
    """Rows of a matrix."""
    unit: str = ""
    """A word, 'degrees', '%' or '$'."""
    question: str = ""


def understand(text: str, question: str = "") -> Gold:
    """Say what a gold answer is."""
    gold = text.strip().strip("$").rstrip(".").strip()
    plain = _THOUSANDS.sub("", gold)
    for attempt in (_value, _united, _option, _base, _matrix, _bracketed, _list):
        found = attempt(gold, plain)
        if found is not None:
            return replace(found, question=question)
    return Gold(gold, Shape.OTHER, question=question)


def _readable(text: str) -> Exact | None:
    try:
        return read(text)
    except Unreadable:
        return None


def _value(gold: str, plain: str) -> Gold | None:
    value = _readable(plain)
    return None if value is None else Gold(gold, Shape.VALUE, (value,), (plain,))


def _united(gold: str, plain: str) -> Gold | None:
    found = _UNIT.fullmatch(plain)
    money = _MONEY.fullmatch(plain)
    if found is None and money is None:
        return None
    inner = found["value"] if found else money["value"] if money else ""
    value = _readable(inner)
    if value is None or value.rational is None:
        return None
    unit = "$"
    if found:
        unit = found["word"] or ("degrees" if found["degrees"] else "%")
    unit = "degrees" if unit == "degree" else unit
    return Gold(gold, Shape.VALUE, (value,), (inner,), unit=unit)


def _option(gold: str, plain: str) -> Gold | None:
    del plain
    found = _OPTION.fullmatch(gold)
    return Gold(gold, Shape.OPTION, parts=(found[1],)) if found else None


def _base(gold: str, plain: str) -> Gold | None:
    found = _BASE.fullmatch(plain)
    if found is None or any(int(digit) >= int(found[2]) for digit in found[1]):
        return None
    return Gold(gold, Shape.BASE, parts=(found[1], found[2]))


def _matrix(gold: str, plain: str) -> Gold | None:
    found = _MATRIX.fullmatch(plain)
    if found is None:
        return None
    rows = [row.split("&") for row in found[1].split("\\\\") if row.strip()]
    parts = tuple(part.strip() for row in rows for part in row)
    values = _all_readable(parts)
    if values is None or len({len(row) for row in rows}) != 1:
        return None
    return Gold(gold, Shape.MATRIX, values, parts, rows=len(rows))


def _bracketed(gold: str, plain: str) -> Gold | None:
    del plain
    found = _BRACKETS.fullmatch(gold)
    listed = _parts(found[2]) if found else None
    if found is None or listed is None:
        return None
    brackets = found[1] + found[3]
    if brackets != "()" and len(listed[1]) != 2:
        return None
    shape = Shape.POINT if brackets == "()" else Shape.INTERVAL
    return Gold(gold, shape, *listed, brackets=brackets)


def _list(gold: str, plain: str) -> Gold | None:
    del plain
    if re.search(r"(?<!\d)\d{1,3}(?:,\d{3})+(?!\d)", gold):
        return None  # 1,234 is one number or two
    listed = _parts(gold)
    if listed is None or len(set(listed[0])) != len(listed[0]):
        return None
    return Gold(gold, Shape.LIST, *listed)


def _parts(text: str) -> tuple[tuple[Exact, ...], tuple[str, ...]] | None:
    """Split at commas; None unless there are several parts and every one is a value."""
    parts = tuple(part.strip(" \\!;~") for part in text.split(","))
    values = _all_readable(parts)
    return None if values is None or len(parts) < 2 else (values, parts)


def _all_readable(parts: tuple[str, ...]) -> tuple[Exact, ...] | None:
    values = tuple(value for value in map(_readable, parts) if value is not None)
    return values if len(values) == len(parts) else None
