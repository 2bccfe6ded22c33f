"""The canonical form of a cell: what JSON can hold, whatever type a column has.

Equal cells have equal forms, so that a row's digest does not depend on who wrote the table. A cell
that has none is an UnreadCell: it decides nothing unless somebody uses it.

    timestamp, date, time    ISO 8601: 2026-03-01T09:30:00, 2026-03-01, 09:30:00
    duration, interval       ISO 8601 in seconds: PT172800S, P1M2DT3S
    decimal                  its digits: 9.90
    NaN, infinity            NaN, Infinity, -Infinity
    bytes                    their text if they are UTF-8, else data:;base64,...
    map                      an object if its keys are different texts, else a list of pairs
"""

import base64
import datetime
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

import numpy as np
import pyarrow as pa

_NANO = 10**9
_SHORT = {pa.float16(): np.float16, pa.float32(): np.float32}


@dataclass(frozen=True, slots=True)
class UnreadCell:
    """A cell without a form that JSON can hold."""

    problem: str

    def __str__(self) -> str:
        return f"unread: {self.problem}"


class Digits(str):
    """The text of a decimal: a number, whose point is a machine's in every language."""

    __slots__ = ()


def canonical_cell(value: object) -> object:  # noqa: PLR0911, C901 - one line a type
    """Return the form of a cell, whose parts are canonical, too."""
    match value:
        case None | bool() | int() | str() | UnreadCell():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
        case Decimal():
            return Digits(f"{value:f}")
        case datetime.timedelta():
            return f"PT{_seconds(_nanoseconds(value))}S"
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes():
            return _text_of(value)
        case uuid.UUID():
            return str(value)
        case pa.MonthDayNano():
            return f"P{value.months}M{value.days}DT{_seconds(value.nanoseconds)}S"
        case Mapping():
            return _object(cast("Mapping[object, object]", value))
        case list() | tuple():
            return [canonical_cell(part) for part in cast("Sequence[object]", value)]
        case _:
            return UnreadCell(f"{type(value).__name__} has no text")


def _object(cells: Mapping[object, object]) -> object:
    if all(isinstance(name, str) for name in cells):
        return {name: canonical_cell(cell) for name, cell in cells.items()}
    return canonical_cell(list(cells.items()))


def column_cells(column: pa.Array) -> list[object]:
    """Return the canonical cells of a column.

    Half and single precision are read as the decimals that they were written from, also within
    lists and objects: 0.1, not 0.1000000015.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type == pa.float32():  # as below, and faster
        column = column.cast(pa.string()).cast(pa.float64())
    try:
        values: list[object] = column.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, ValueError, OverflowError, KeyError, NotImplementedError):
        values = [_cell_alone(cell) for cell in column]
    if _is_short(column.type):
        values = [_as_written(value, column.type) for value in values]
    if pa.types.is_string(column.type) or pa.types.is_integer(column.type):
        return values  # most columns are these, and canonical already
    return [canonical_cell(value) for value in values]


def _is_short(kind: pa.DataType) -> bool:
    """Say whether a type has a part of less than double precision."""
    parts = (kind.field(place).type for place in range(kind.num_fields))
    return kind in _SHORT or any(map(_is_short, parts))


def _as_written(value: object, kind: pa.DataType) -> object:
    """Return a value whose short numbers are the shortest decimals that round to them."""
    match value:
        case float() if kind in _SHORT:
            return float(str(_SHORT[kind](value)))
        case list():
            parts = cast("list[object]", value)
            if pa.types.is_map(kind):  # pairs, where keys are no texts
                types = (kind.key_type, kind.item_type)
                pairs = cast("list[tuple[object, object]]", parts)
                return [tuple(map(_as_written, pair, types)) for pair in pairs]
            return [_as_written(part, kind.value_type) for part in parts]
        case Mapping():
            cells = cast("Mapping[str, object]", value)
            if pa.types.is_map(kind):
                return {name: _as_written(cell, kind.item_type) for name, cell in cells.items()}
            return {name: _as_written(cell, kind.field(name).type) for name, cell in cells.items()}
        case _:
            return value


def unread_in(value: object) -> UnreadCell | None:
    """Return the first unread part of a cell; None if all can be used."""
    match value:
        case UnreadCell():
            return value
        case Mapping():
            parts = list(cast("Mapping[str, object]", value).values())
        case list():
            parts = cast("list[object]", value)
        case _:
            return None
    return next((one for one in map(unread_in, parts) if one is not None), None)


def _cell_alone(cell: pa.Scalar) -> object:
    """Read a cell of a column that has some which Python cannot hold, such as the year 20000."""
    try:
        return cell.as_py()
    except (pa.ArrowException, ValueError, OverflowError, KeyError, NotImplementedError) as error:
        cause = str(error).partition("\n")[0]
    if not pa.types.is_temporal(cell.type):
        return UnreadCell(cause)
    try:
        text = str(cell.cast(pa.string()).as_py())
    except (pa.ArrowException, NotImplementedError):
        return UnreadCell(cause)
    # Arrow writes '<value out of range: ...>' of what is no year of four or five digits.
    if not text[:1].isdigit():
        return UnreadCell(cause)
    # As isoformat() does, without the zeros that the unit of the column adds.
    text = text.replace(" ", "T", 1)
    return re.sub(r"\.?0+(?=Z?$)", "", text) if "." in text else text


def _nanoseconds(value: datetime.timedelta) -> int:
    """Return nanoseconds, which pandas' class of a duration has beside Python's microseconds."""
    micros = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
    return micros * 1000 + int(getattr(value, "nanoseconds", 0))


def _seconds(nanoseconds: int) -> str:
    whole, part = divmod(abs(nanoseconds), _NANO)
    fraction = f".{part:09d}".rstrip("0") if part else ""
    return f"{'-' * (nanoseconds < 0)}{whole}{fraction}"


def _text_of(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"data:;base64,{base64.b64encode(value).decode()}"
