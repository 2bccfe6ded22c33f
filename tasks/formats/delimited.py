"""Tables of cells divided by commas, semicolons, tabs or bars, with a header.

Quotes are read as RFC 4180 says. Where they break, the lines that are damaged are returned as such
and reading goes on with the next one: those that are rows for certain are not lost with them, and
no line of a text that was cut open is taken for a row.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

_MAX_CELL = 2**27
"""Characters of a cell; the library's own limit of 131,072 is less than a long response."""
_DELIMITERS = ",;\t"
"""What divides the cells: spreadsheets of many languages write semicolons."""
_LAST_DELIMITER = "|"
"""Feeds write bars; in a header that has one of the others a bar is part of a name."""
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR = re.compile(r'\ufeff?"?sep=(.)"?\s*', re.IGNORECASE)
"""A first line of Excel's, `sep=;`, which says what divides the others."""
_LEAST_COLUMNS = 3
"""Columns from which rows that a quote took for one text can be told from such a text."""
_MOST_LINES = 1000
"""Lines behind a damaged one that are searched for the end of its cell."""


SUFFIXES = (".csv", ".tsv")
COMPRESSIONS = {"": None, ".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
"""Suffix behind that of a format -> its name in Arrow."""


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that belongs to no row which can be read for certain."""

    text: str
    """With its ending."""
    number: int
    """From 1, the header's."""
    cause: str


def is_delimited(name: str) -> bool:
    """Whether a file is such a table, by its name."""
    return name.lower().endswith(tuple(f"{one}{end}" for one in SUFFIXES for end in COMPRESSIONS))


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressed as its suffix says."""
    packed = COMPRESSIONS.get(path.suffix.lower())
    return cast("IO[bytes]", io.BufferedReader(pa.input_stream(path, compression=packed)))  # pyright: ignore[reportArgumentType]


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a table; a byte that is no UTF-8 becomes half of a surrogate pair."""
    return io.TextIOWrapper(
        open_bytes(path), encoding="utf-8-sig", errors="surrogateescape", newline=""
    )


def header_of(lines: Iterable[str]) -> list[str]:
    """Return the names of the columns; none of an empty table, or where quotes break in them."""
    table = _Table(lines)
    return table.names


def read_delimited(lines: Iterable[str]) -> Iterator[list[str] | DamagedLine]:
    """Yield the names of the columns, then the cells of every row, and damaged lines in between.

    A row may have more or less cells than there are names.

    Args:
        lines: with their endings.
    """
    table = _Table(lines)
    yield table.names
    yield from table.rows()


def cells_under(header: Iterable[str], text: str) -> dict[str, str]:
    """Return the cells of a row by itself; none if it is no row of this table.

    Args:
        header: lines of the table, of which only those of its header are read.
        text: of one row, with or without its ending.
    """
    table = _Table(header)
    try:
        rows = list(table.read(io.StringIO(text)))
    except csv.Error:
        return {}
    if len(rows) != 1 or len(rows[0]) != len(table.names):
        return {}
    return dict(zip(table.names, rows[0], strict=True))


def rows_of(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the cells of the rows by the names of their columns; damaged lines are left out."""
    names: list[str] | None = None
    for cells in read_delimited(lines):
        if isinstance(cells, DamagedLine):
            continue
        if names is None:
            names = cells
        elif len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


class _Table:
    """Lines, and a reader that begins anew behind damage."""

    def __init__(self, lines: Iterable[str]) -> None:
        csv.field_size_limit(_MAX_CELL)
        self._source = iter(lines)
        self._ahead: deque[str] = deque()
        self._taken: list[str] = []
        self._number = 0
        first = self._first_line()
        separator = _SEPARATOR.fullmatch(first)
        if separator:
            self._number += 1
            first = self._first_line()
        self.delimiter = separator[1] if separator else _delimiter(first)
        # `"title", "kind"`: a blank before a quote is none of its cell.
        self._skips_blanks = re.search(rf'{re.escape(self.delimiter)} +"', first) is not None
        if first:
            self._ahead.append(first)
        self._reader = self._new_reader()
        try:
            self.names = next(self._reader, [])
        except csv.Error:  # what it takes with it is damaged
            self._ahead.extend(self._taken)
            self.names = []
            self._reader = self._new_reader()  # one that has failed yields nothing any more
        else:
            self._number += len(self._taken)
        self._taken.clear()

    def _first_line(self) -> str:
        """Return the next line that is not blank; '' if there is none."""
        for line in self._source:
            if line.strip("\ufeff\r\n "):
                return line
            self._number += 1
        return ""

    def _new_reader(self) -> Iterator[list[str]]:
        return self.read(self._lines())

    def read(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield the cells of lines as those of this table are written; a broken quote raises."""
        return csv.reader(
            lines, strict=True, delimiter=self.delimiter, skipinitialspace=self._skips_blanks
        )

    def _lines(self) -> Iterator[str]:
        while (line := self._next_line()) is not None:
            yield line

    def _next_line(self) -> str | None:
        line = self._ahead.popleft() if self._ahead else next(self._source, None)
        if line is not None:
            self._taken.append(line)
        return line

    def rows(self) -> Iterator[list[str] | DamagedLine]:
        """Yield cells and damaged lines, in order."""
        while True:
            cause = ""
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                row, cause = [], str(error)
            if not cause and len(self._taken) > 1 and self._swallows(row):
                cause = "a quote at the start of a cell is not closed in its line"
            if cause:
                yield from self._damage(cause)
                self._reader = self._new_reader()
            elif row:
                yield row
            self._number += len(self._taken)
            self._taken.clear()

    def _swallows(self, row: Sequence[str]) -> bool:
        """True if a quote made one row of several lines, each of which is a row by itself.

        Tabs divide rows in feeds that quote nothing, and stand in no text. A text of several lines
        may have commas, but not as many in each line as the header: of two columns or two lines
        this cannot be told.
        """
        if self.delimiter == "\t":
            return len(row) != len(self.names) or all(map(self._is_row, self._taken))
        within = self._taken[1:-1]
        if len(self.names) < _LEAST_COLUMNS or not within or not all(map(self._is_row, within)):
            return False
        return len(row) != len(self.names) or all(map(self._is_row, self._taken))

    def _is_row(self, line: str) -> bool:
        return line.count(self.delimiter) == len(self.names) - 1

    def _damage(self, cause: str) -> Iterator[list[str] | DamagedLine]:
        """Yield the lines that a broken quote may belong to, damaged or as the rows that they are.

        Where every line between the quote and the next one is a row by itself, the quote was
        damage. Otherwise they may be the text of a cell, and all of them are damaged.
        """
        if len(self._taken) == 1 and _is_open(self._taken[0]):
            while len(self._taken) <= _MOST_LINES:
                if (line := self._next_line()) is None or _is_open(line):
                    break
        first, *others = self._taken
        if '\\"' in first:
            cause = "a backslash escapes a quote; export with doubled quotes (Spark: escape='\"')"
        if self.delimiter == "\t":
            # No text has a tab, so that what follows the line can be read anew.
            self._ahead.extendleft(reversed(others))
            del self._taken[1:]
            yield DamagedLine(first, self._number + 1, cause)
            return
        end = others.pop() if others and _is_open(others[-1]) else None
        rows = [self._cells(line) for line in others]
        is_damage = len(self.names) > 1 and all(len(row) == len(self.names) for row in rows if row)
        yield DamagedLine(first, self._number + 1, cause)
        for place, (line, row) in enumerate(zip(others, rows, strict=True), start=2):
            if is_damage and row:
                yield row
            elif line.strip():
                yield DamagedLine(line, self._number + place, cause)
        if end is not None:
            yield DamagedLine(end, self._number + len(others) + 2, cause)

    def _cells(self, line: str) -> list[str]:
        """Return the cells of a line by itself; of one that is none, a list of another length."""
        if not line.strip():
            return []
        try:
            return next(self.read([line]))
        except csv.Error:
            return [""] * (len(self.names) + 1)


def _is_open(line: str) -> bool:
    """True if a cell that begins in this line ends in another one: quotes come in pairs."""
    return line.count('"') % 2 == 1


def _delimiter(header: str) -> str:
    """Return what divides a header most often, outside of quotes; a comma if nothing does."""
    bare = _QUOTED.sub("", header)
    best = max(_DELIMITERS, key=bare.count)
    return best if best in bare or _LAST_DELIMITER not in bare else _LAST_DELIMITER
