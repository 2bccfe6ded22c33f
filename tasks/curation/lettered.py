"""Find the options of an examination in a table, and how its key names the right one.

Options are a list within a cell (`choices`, ARC's `choices.text`, or a list that a CSV file writes
as text), or columns that a letter or a number tells apart (`A`, `option_b`, `pilihan3`), which may
be those of an object (`options: {"A": ...}`). The key is a letter, or a number from 0 or 1.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tasks.curation.guessing.columns import NUMPY_LIST
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
_LETTER = re.compile(r"\(?[A-Ja-j0-9]\)?")
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


def is_key(name: str, values: Iterable[str]) -> bool:
    """Return whether a column names the right option of an examination by its letter."""
    return bool(_KEY.search(name)) and {*map(str.upper, values)} <= {*LETTERS}


def find_options(rows: Sequence[Row]) -> LetteredOptions | None:
    """Return the options and the key of an examination; None if the table is none.

    Raises:
        DataError: the key counts from 0 or from 1, and its values do not tell which.
    """
    first = rows[:_FIRST]
    names = dict.fromkeys(name for row in first for name in row)
    for options in list_options(first):
        taken = {path.partition(".")[0] for path in options}
        for key in (name for name in names if name not in taken and _KEY.search(name)):
            entries = Counter(text for row in rows if (text := _text(row.get(key))))
            marks = _marks(first, len(options)) if entries else ""
            if entries and (values := _letters(key, entries, len(options), marks)):
                return LetteredOptions(options, key, values)
        if key := _key_by_values(rows, [name for name in names if name not in taken], options):
            return key
    _check_lists(first, [name for name in names if _KEY.search(name)])
    return None


def list_options(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """List what may be options, by their paths, those of the most rows first."""
    counts = Counter(one for row in rows[:_FIRST] for one in _candidates(row))
    return [options for options, _ in counts.most_common()]


def _check_lists(rows: Sequence[Row], keys: Sequence[str]) -> None:
    """Refuse options that cannot be told apart, beside a key of them.

    Raises:
        DataError: a column has lists as numpy prints them.
    """
    is_key = any(_LETTER.fullmatch(_text(row.get(key))) for key in keys for row in rows[:1])
    for name, cell in rows[0].items() if is_key and rows else ():
        if isinstance(cell, str) and NUMPY_LIST.fullmatch(cell.strip()):
            raise DataError(
                f"{name} has lists without commas, as numpy prints them: the options of {keys[0]} "
                "cannot be told apart. Export the table as JSON lines or Parquet"
            )


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
    """Yield a row and the objects in it, each with what stands before its names in a path.

    The one object of a list is one of them: `prompts: [{"premise": ..., "choice1": ...}]`.
    """
    yield "", row
    for name, cell in row.items():
        value, path = written_value(cell), f"{name}."
        if isinstance(value, list) and len(objects := cast("list[object]", value)) == 1:
            value, path = objects[0], f"{name}.0."
        if _is_object(value):
            yield path, cast("Row", value)


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


def _marks(rows: Sequence[Row], count: int) -> str:
    """Return the number of the first option, where lists name them all (ARC); '' if none do."""
    for row in rows:
        for _, cells in _lists(row):
            if cells in ([str(n) for n in range(start, start + count)] for start in (0, 1)):
                return cells[0]
    return ""


def _letters(key: str, entries: Mapping[str, int], count: int, mark: str = "") -> dict[str, str]:
    """Return which letter each value of a key means; nothing if it is no key of these options.

    A key may have letters in some rows and numbers in others, as ARC's, and a few rows that have
    more options than the others may have other letters.

    Args:
        key: column, for messages.
        entries: what it says, and in how many rows.
        count: of the options.
        mark: number of the first option, if the table says it.

    Raises:
        DataError: its numbers may count from 0 or from 1.
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
    if not mark and numbers[0] > 0 and numbers[-1] < count:
        raise DataError(
            f"{key} names the right one of {count} options by numbers from {numbers[0]} to "
            f"{numbers[-1]}: do they count from 0 or from 1? Write the mapping by hand "
            "(tasks/curation/README.md), with `values` that say which letter each one is"
        )
    first = int(mark) if mark else 0 if numbers[0] == 0 else 1
    return {str(n): own[n - first] for n in range(first, count + first)} | dict(
        sorted(letters.items())
    )
