"""Find the options of an examination in a table, and how its key names the right one.

Options are a list within a cell (`choices`, ARC's `choices.text`, or a list that a CSV file writes
as text), or columns that a letter or a number tells apart (`A`, `option_b`, `pilihan3`), which may
be those of an object (`options: {"A": ...}`). The key is a letter, or a number from 0 or 1.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tasks.curation.readers.written_values import written_value
from tasks.errors import DataError

Row = Mapping[str, object]

LETTERS = "ABCDEFGHIJ"
_LEAST = 2
_FIRST = 1000
"""Rows whose commonest number of options is that of the table."""
_MOSTLY = 0.95
"""Share of rows whose key is one of these options."""
# "A", "option_b", "optionC", "choice 1", "opa" (MedMCQA).
_MARKED = re.compile(r"(?P<stem>|.*[\s_.-]|.*[a-z](?=[A-J])|op)(?P<letter>[A-Ja-j])")
_NUMBERED = re.compile(r"(?P<stem>.*\D)(?P<number>\d)")
_KEY = re.compile(
    r"^cop$|answer|correct|gold|label|target|solution|(?:^|_)key|kunci|jawab|benar|resposta|gabarito|correta"
    r"|jawap|respuesta|clave|đáp|trả_lời|sagot|tamang|คำตอบ|เฉลย|答|正解|정답"
    r"|antwort|lösung|réponse|risposta|ответ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LetteredOptions:
    """Where the options of a question stand, and what its key says."""

    options: tuple[str, ...]
    """Paths of the options, in the order of their letters."""
    key: str
    """Column that names the right one."""
    values: Mapping[str, str]
    """What the column says -> letter."""


def find_options(rows: Sequence[Row]) -> LetteredOptions | None:
    """Return the options and the key of an examination; None if the table is none.

    Raises:
        DataError: the key counts from 0 or from 1, and its values do not tell which.
    """
    first = rows[:_FIRST]
    names = dict.fromkeys(name for row in first for name in row)
    for options, _ in Counter(one for row in first for one in _candidates(row)).most_common():
        taken = {path.partition(".")[0] for path in options}
        for key in (name for name in names if name not in taken and _KEY.search(name)):
            entries = Counter(text for row in rows if (text := _text(row.get(key))))
            if entries and (values := _letters(key, entries, len(options))):
                return LetteredOptions(options, key, values)
        if key := _key_by_values(rows, [name for name in names if name not in taken], options):
            return key
    return None


def _key_by_values(
    rows: Sequence[Row], names: Sequence[str], options: Sequence[str]
) -> LetteredOptions | None:
    """Return the options with the one column that has nothing but their letters, and several."""
    keys: list[LetteredOptions] = []
    for name in names:
        entries = Counter(_text(row.get(name)) for row in rows)
        if len(entries) > 1 and entries.keys() <= {*LETTERS[: len(options)]}:
            values = _letters(name, entries, len(options))
            keys.append(LetteredOptions(tuple(options), name, values))
    return keys[0] if len(keys) == 1 else None


def _candidates(row: Row) -> list[tuple[str, ...]]:
    candidates = [
        tuple(f"{path}.{place}" for place in range(len(cells)))
        for path, cells in _lists(row)
        if _LEAST <= len(cells) <= len(LETTERS) and not {*cells} <= {*LETTERS}
    ]
    stems: dict[str, dict[str, str]] = {}
    for prefix, cells in _objects(row):
        for name in cells:
            for form in (_MARKED, _NUMBERED):
                if (match := form.fullmatch(name)) and cells[name] not in (None, ""):
                    stem = f"{prefix}{match[1].casefold()}"
                    stems.setdefault(stem, {})[match[2].upper()] = f"{prefix}{name}"
    for columns in stems.values():
        for marks in (LETTERS, "0123456789", "123456789"):
            run = [columns[mark] for mark in marks if mark in columns]
            if len(run) == len(columns) >= _LEAST and marks.startswith("".join(sorted(columns))):
                candidates.append(tuple(run))
    return candidates


def _objects(row: Row) -> Iterator[tuple[str, Row]]:
    """Yield a row and the objects in it, each with what stands before its names in a path."""
    yield "", row
    for name, cell in row.items():
        value = written_value(cell)
        if _is_object(value):
            yield f"{name}.", cast("Row", value)


def _lists(row: Row) -> list[tuple[str, list[str]]]:
    """List the lists of texts of a row, and those within its objects."""
    lists: list[tuple[str, list[str]]] = []
    for name, cell in row.items():
        value = written_value(cell)
        if isinstance(value, list):
            cells = cast("list[object]", value)
            if all(isinstance(cell, str | int | float) for cell in cells):
                lists.append((name, [str(cell) for cell in cells]))
        elif _is_object(value):
            inner = _lists(cast("Row", value))
            lists += [(f"{name}.{path}", cells) for path, cells in inner if "." not in path]
    return lists


def _is_object(value: object) -> bool:
    """Say whether a cell has fields that a path can name; those of `{1: 2}` are numbers."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, list | dict) else str(value).strip()


def _letters(key: str, entries: Mapping[str, int], count: int) -> dict[str, str]:
    """Return which letter each value of a key means; nothing if it is no key of these options.

    A key may have letters in some rows and numbers in others, as ARC's, and a few rows that have
    more options than the others may have other letters.
    """
    own = LETTERS[:count]
    bare = {value: value.strip("(). ").upper() for value in entries}
    letters = {value: one for value, one in bare.items() if len(one) == 1 and one in own}
    numbers = sorted(int(value) for value in entries if value.isdecimal())
    others = sum(n for one, n in entries.items() if one not in letters and not one.isdecimal())
    if others > (1 - _MOSTLY) * sum(entries.values()) or not (letters or numbers):
        return {}
    if not numbers:
        return dict(sorted(letters.items()))
    if numbers[-1] > count or (numbers[0] == 0 and numbers[-1] == count):
        return {}
    if numbers[0] > 0 and numbers[-1] < count:
        raise DataError(
            f"{key} names the right one of {count} options by numbers from {numbers[0]} to "
            f"{numbers[-1]}: do they count from 0 or from 1? Write the mapping by hand "
            "(tasks/curation/README.md), with `values` that say which letter each one is"
        )
    first = 0 if numbers[0] == 0 else 1
    return {str(n): own[n - first] for n in range(first, count + first)} | dict(
        sorted(letters.items())
    )
