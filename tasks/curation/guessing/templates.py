"""Templates of a mapping, and what of the rows they leave out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from data_schemas.mappings import ColumnMapping, placeholders
from tasks.curation.guessing.columns import Column, Row, listing
from tasks.curation.lettered import parts_at
from tasks.curation.readers.paths import parts_of
from tasks.curation.readers.written_values import written_value
from tasks.errors import DataError

_LEAST_KEYED = 2
"""Objects of one form that are no rows by their names: two are left and right."""
MOST_COLUMNS = 6
"""Columns of a prompt, and facets: of a table with 300, the best are chosen."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The fields of a mapping without language, and the columns that they rest on."""

    fields: dict[str, object]
    columns: tuple[str, ...] = ()
    """Columns of the prompt."""
    label: str = ""
    """Column of the right options."""
    numbers: str = ""
    """Column of the answers, if they are numbers."""
    options: tuple[str, ...] = ()
    values: Mapping[str, dict[str, str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    lettered: tuple[str, ...] = ()
    """Columns of the options, if these are letters."""
    is_even: bool = True
    """Whether all rows have all of these."""
    texts: tuple[str, ...] = ()
    """What is asked in each row, if the table is a chat."""
    is_chat: bool = False
    """Whether the response is the last turn of a chat."""
    has_system: bool = False
    """Whether turns of a chat begin with a system message."""


def blanks(columns: Sequence[Column]) -> list[str]:
    """Say of columns that no row can do without in how many there is no value."""
    remarks = [
        f"{column.name} is empty in {count:,} of {len(column.values):,} rows; they are left out."
        for column in columns
        if (count := column.values.count("") - sum(column.words.values()))
    ]
    return remarks + [
        f"{column.name} is {word} in {count:,} of {len(column.values):,} rows, which is read as it "
        "stands: if it says that there is no value, remove these rows."
        for column in columns
        for word, count in column.words.items()
    ]


def check_one_row_each(name: str, mapping: ColumnMapping, rows: Sequence[Row]) -> None:
    """Refuse rows that hold several: as parts of a list, or of objects by their number.

    The latter is what pandas writes by itself: `{"question": {"0": ..., "1": ...}, ...}`.

    Raises:
        DataError: names where they are.
    """
    cells = [cell for cell in rows[0].values() if isinstance(cell, Mapping)]
    forms = {tuple(cast("Row", cell)) for cell in cells}
    if len(rows) == 1 and len(forms) == 1 and len(cells) == len(rows[0]) > _LEAST_KEYED:
        raise DataError(f"{name} has several rows in a line, by their names: jq -c '.[]'")
    gold = [*placeholders(mapping.response)] or [*mapping.required]
    parts = {_numbered(rows[0], column) for column in [*placeholders(mapping.prompt), *gold]}
    paths = {path for path, is_list in parts if is_list}
    if all(path and not is_list for path, is_list in parts):
        raise DataError(f"{name} has an object a column with the rows by their numbers")
    if len(parts) == len(paths) == 1 and _length(rows[0], path := paths.pop()) > 1:
        raise DataError(
            f"{name} has several rows in a line, the parts of {path}: jq -c '.{path}[]'"
        )


def _numbered(row: Row, column: str) -> tuple[str, bool]:
    """Return the path of what holds a column by a number, and whether it is a list; '' = none.

    A row whose own columns are numbers is called `.`.
    """
    cell: object = row
    parts = [] if column in row else parts_of(column, row)
    for place, part in enumerate(parts):
        cell = written_value(cell)
        if isinstance(cell, list):
            return ".".join(parts[:place]), True
        keys = cast("Row", cell) if isinstance(cell, Mapping) else {}
        if len(keys) > 1 and all(key.isdecimal() for key in keys):
            return ".".join(parts[:place]) or ".", False
        cell = keys.get(part)
    return "", False


def more_parts(mapping: ColumnMapping, rows: Sequence[Row]) -> list[str]:
    """Say of which lists templates read the first parts, where rows have more."""
    num_read: dict[str, int] = {}
    for column in mapping.columns:
        # A column of its own may be called `choices.0`.
        parts = [] if any(column in row for row in rows) else parts_of(column, rows[0])
        for place, part in enumerate(parts):
            if part.isdecimal():
                path = ".".join(parts[:place])
                num_read[path] = max(num_read.get(path, 0), int(part) + 1)
    # A list that is a gold as a whole: any of its labels is right.
    words = dict.fromkeys(mapping.columns, "any of which is right")
    return [
        f"{path} has more than {most} parts in {count:,} of {len(rows):,} rows, "
        f"{words.get(path, 'which nothing reads')}."
        for path, most in num_read.items()
        if (count := sum(_length(row, path) > most for row in rows))
    ]


def _length(row: Row, path: str) -> int:
    return len(parts_at(row, path))


def unused(mapping: ColumnMapping, columns: Sequence[Column]) -> list[str]:
    """List the columns that no template takes anything from."""
    used = {name.partition(".")[0] for name in mapping.columns} | {*mapping.columns}
    tops = [c.name.partition(".")[0] for c in columns if c.name not in used]
    return [name for name in dict.fromkeys(tops) if name not in used]


# "contexts" (RAGAS), "retrieved_documents", "supporting_facts"
_PASSAGES = re.compile(
    r"(?:.*_)?(?:contexts?|passages?|documents?|docs|evidences?|facts|sources|paragraphs|chunks)"
)


def not_used(names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Say which columns no template uses, and which of them a question may be about.

    Args:
        names: of these columns.
        rows: of the table.
    """
    if not names:
        return []
    remarks = [f"Not used: {listing(names, 3)}."]
    for name in names:
        parts = next((cells for row in rows if (cells := parts_at(row, name))), [])
        is_texts = bool(parts) and all(isinstance(one, str) for one in parts)
        if is_texts and _PASSAGES.fullmatch(name.casefold()):
            remarks.append(
                f"{name} has texts in a list, which no prompt has: if questions are about them, "
                "write them as one text into a column called context."
            )
    return remarks
