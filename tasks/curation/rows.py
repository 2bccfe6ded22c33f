"""Stream the rows of raw files, each with the hash of its bytes.

Reads JSON lines, CSV with a header (also divided by semicolons or tabs), and parquet; the first two
also compressed. A row that cannot
be read is returned as an UnreadableRow at its position, and so is the rest of a damaged file, so
that no row is lost silently. Blank lines are not rows, and a byte order mark at the start of a file
is part of none. A table with two columns of one name is refused whole: a row can have one of them.
"""

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import DataError
from tasks.store.files import canonical_json, sha256_bytes, sha256_file

_COMPRESSIONS = ("", ".gz", ".zst", ".bz2", ".lz4")
SUFFIXES = (
    *(f"{kind}{packed}" for kind in (".jsonl", ".csv") for packed in _COMPRESSIONS),
    ".parquet",
)
_BATCH = 1024
"""Rows of a parquet file that are read at once."""
_MAX_CELL = 2**27
"""Characters of a CSV cell; the library's own limit of 131,072 is less than a long response."""
_DELIMITERS = ",;\t"
"""What divides the cells of a CSV file: spreadsheets of many languages write semicolons."""
_QUOTED = re.compile(r'"[^"]*"')
_ENCODING_SAMPLE = 2**16
"""First bytes of a file of which the encoding is told."""
_HEAD = 64
"""Bytes of a header, in which most letters are ASCII."""
_FEW_BROKEN = 3
"""Bytes that are no UTF-8 and still damage; at the end of the sample a letter may be cut in two."""


class BadRow(DataError):
    """This raw row yields no item; `reason` is the code it is counted under."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class RawRow:
    """One raw row as an adapter sees it."""

    key: str
    """'<file name without suffix>-<row number from 1>'."""
    source_row: str
    """sha256 of the line without its line ending and the file's byte order mark; CSV and parquet
    rows as canonical JSON."""
    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return a string field with normalised line endings and surrounding blanks removed.

        Raises:
            BadRow: the field is missing, not a string or blank.
        """
        value = self._value(name)
        if not isinstance(value, str):
            raise BadRow("missing_field", f"{name!r} is {type(value).__name__}, not text")
        cleaned = tidy(value)
        if not cleaned:
            raise BadRow("empty_field", f"{name!r} is blank")
        return cleaned

    def items(self, name: str, *, may_be_empty: bool = False) -> list[object]:
        """Return a list field.

        Raises:
            BadRow: the field is missing, not a list, or empty although it must not be.
        """
        value = self._value(name)
        if not isinstance(value, list):
            raise BadRow("missing_field", f"{name!r} is {type(value).__name__}, not a list")
        if not value and not may_be_empty:
            raise BadRow("empty_field", f"{name!r} is an empty list")
        return value

    def _value(self, name: str) -> object:
        if name not in self.fields:
            columns = ", ".join(sorted(self.fields))
            raise BadRow("missing_field", f"{name!r} is not among {columns}")
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A raw row that is not a JSON object."""

    key: str
    source_row: str
    problem: BadRow


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place of a file that no row can be read from."""

    source_row: str
    problem: BadRow


Unit = bytes | dict[str, str] | pa.RecordBatch | Unreadable
"""A line without its ending, a row of a CSV file, several rows of a parquet file, or damage."""


def tidy(text: str) -> str:
    """Write every line ending as a newline and remove blanks at both ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def read_rows(path: Path) -> Iterator[RawRow | UnreadableRow]:
    """Stream the rows of a file, in order."""
    return decode(path.stem, 1, read_units(path))


def read_units(path: Path) -> Iterator[Unit]:
    """Stream what a file holds without parsing more of it than rows begin and end with.

    The last unit of a damaged file is the damage.
    """
    number = 0
    try:
        for unit in _reader(path):
            number += num_rows(unit)
            yield unit
    except (pa.ArrowInvalid, OSError, csv.Error) as error:
        bad = BadRow("damaged_file", f"{path.name} after row {number}: {error}")
        yield Unreadable(sha256_bytes(ascii(bad).encode()), bad)


def decode(stem: str, first: int, units: Iterable[Unit]) -> Iterator[RawRow | UnreadableRow]:
    """Parse units into rows.

    Args:
        stem: of the file's name.
        first: number of the first row in its file.
        units: of one file, in order.
    """
    rows = (row for unit in units for row in _decode(unit))
    for number, (source_row, fields) in enumerate(rows, start=first):
        key = f"{stem}-{number}"
        if isinstance(fields, BadRow):
            yield UnreadableRow(key, source_row, fields)
        else:
            yield RawRow(key, source_row, fields)


def num_rows(unit: Unit) -> int:
    """Return how many rows a unit has."""
    return 1 if isinstance(unit, bytes | dict | Unreadable) else unit.num_rows


def first_rows(unit: Unit, count: int) -> Unit:
    """Return the first rows of a unit that has more."""
    return unit if isinstance(unit, bytes | dict | Unreadable) else unit.slice(0, count)


def num_bytes(unit: Unit) -> int:
    """Return about how much memory a unit takes."""
    if isinstance(unit, bytes):
        return len(unit)
    return len(repr(unit)) if isinstance(unit, dict | Unreadable) else unit.nbytes


def check_readable(path: Path) -> None:
    """Check that the rows of a file can be streamed.

    Raises:
        DataError: the format is unknown, or differs from the suffix, or two columns have one name.
    """
    if not path.name.endswith(SUFFIXES):
        raise DataError(f"{path} is not one of {', '.join(SUFFIXES)}. Convert it first.")
    try:
        if path.suffix != ".parquet":
            with _stream(path) as stream:
                start = stream.read(_ENCODING_SAMPLE)
            if encoding := _other_encoding(start, is_csv=".csv" in path.suffixes):
                raise DataError(
                    f"{path} is {encoding}. Convert it: iconv -f {encoding} -t UTF-8 {path.name} "
                    "> new"
                )
        if problem := _repeated_column(_columns(path)):
            raise DataError(f"{path} has {problem}. Rename or remove one")
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}. Replace the file.") from error


def _other_encoding(start: bytes, *, is_csv: bool) -> str:
    """Name the encoding of a file that is not UTF-8 as a whole; '' if it may be UTF-8.

    A single byte that is none is one damaged row; a file that a spreadsheet wrote in another
    encoding has no UTF-8 at all.
    """
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "UTF-16"
    head = start[:_HEAD]
    for name, first, other in (("UTF-16LE", 1, 0), ("UTF-16BE", 0, 1)):
        # No mark, but every second byte of text in ASCII is zero.
        zeros = head[first::2].count(0)
        if zeros > _FEW_BROKEN and zeros > len(head) // 4 and not head[other::2].count(0):
            return name
    if not is_csv:
        return ""
    text = start.decode("utf-8", errors="surrogateescape")
    broken = sum("\udc80" <= letter <= "\udcff" for letter in text)
    sound = sum(letter > "\x7f" for letter in text) - broken
    return "CP1252" if broken > _FEW_BROKEN and not sound else ""


def _columns(path: Path) -> Sequence[str]:
    """Return the names of a table's columns; of JSON lines, and of a broken header, none."""
    if path.suffix == ".parquet":
        return pq.read_schema(path).names
    if not _is_csv(path):
        return ()
    try:
        with _text(path) as text:
            return _table(text).fieldnames or ()
    except csv.Error:  # counted as the rows that it takes with it
        return ()


def _repeated_column(names: Sequence[str]) -> str:
    """Name a column that is there twice; '' if none is. One without a name is read by nothing."""
    repeated = next((name for name, count in Counter(names).items() if name and count > 1), "")
    return f"two columns named {repeated[:60]!r}, of which a row can have one" if repeated else ""


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes[-2:]


def _unread(path: Path, problem: str) -> Unreadable:
    """Stand for all rows of a table that has two columns of one name."""
    return Unreadable(sha256_file(path), BadRow("repeated_column", f"{path.name} has {problem}"))


def _reader(path: Path) -> Iterator[Unit]:
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if not path.name.endswith(SUFFIXES):
        bad = BadRow("unknown_suffix", f"{path.name} is not one of {', '.join(SUFFIXES)}")
        return iter([Unreadable(sha256_file(path), bad)])
    return _read_csv(path) if _is_csv(path) else _read_lines(path)


def _stream(path: Path) -> IO[bytes]:
    """Open a file, decompressed as its suffix says."""
    return cast("IO[bytes]", io.BufferedReader(pa.input_stream(path)))  # pyright: ignore[reportArgumentType]


def _read_lines(path: Path) -> Iterator[bytes]:
    with _stream(path) as stream:
        for number, line in enumerate(stream):
            whole = line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
            payload = whole.rstrip(b"\r\n")
            if payload.strip():
                yield payload


def _read_csv(path: Path) -> Iterator[dict[str, str] | Unreadable]:
    with _text(path) as text:
        rows, last = _table(text), 1
        try:
            if problem := _repeated_column(rows.fieldnames or ()):
                yield _unread(path, problem)
                return
            for row in rows:
                last = rows.line_num
                yield row
        except csv.Error as error:
            if "unexpected end of data" not in str(error):
                raise
            is_unclosed = True
        else:
            is_unclosed = False
    if is_unclosed:
        yield from _unclosed(path, last)


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        _stream(path), encoding="utf-8-sig", errors="surrogateescape", newline=""
    )


def _table(text: io.TextIOWrapper) -> "csv.DictReader[str]":
    csv.field_size_limit(_MAX_CELL)
    header = text.readline()
    lines = chain([header] if header else [], text)
    return csv.DictReader(lines, strict=True, delimiter=_delimiter(header))


def _delimiter(header: str) -> str:
    """Return what divides the first line most often, outside of quotes; a comma if nothing does."""
    bare = _QUOTED.sub("", header)
    return max(_DELIMITERS, key=bare.count)


def _unclosed(path: Path, last: int) -> Iterator[Unreadable]:
    """Yield every line behind the last row of a file in which a quote is never closed.

    They are one cell to a reader of CSV, and rows to whoever wrote them: each of them is counted.
    """
    with _stream(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number > last and line.strip():
                problem = f"{path.name}, line {number}: a quote at line {last + 1} or after is open"
                bad = BadRow("unclosed_quote", f"{problem} to the end of the file")
                yield Unreadable(sha256_bytes(line.rstrip(b"\r\n")), bad)


def _read_parquet(path: Path) -> Iterator[pa.RecordBatch | Unreadable]:
    with pq.ParquetFile(path) as table:
        if problem := _repeated_column(table.schema_arrow.names):
            yield _unread(path, problem)
            return
        yield from map(_in_double, table.iter_batches(batch_size=_BATCH))


def _in_double(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Read single precision as the decimals that it was written from: 0.1, not 0.1000000015."""
    for place, field in enumerate(batch.schema):
        if field.type in (pa.float16(), pa.float32()):
            column = batch.column(place).cast(pa.float32()).cast(pa.string()).cast(pa.float64())
            batch = batch.set_column(place, field.name, column)
    return batch


def _decode(unit: Unit) -> Iterator[tuple[str, Mapping[str, object] | BadRow]]:
    match unit:
        case bytes():
            yield sha256_bytes(unit), _parse(unit)
        case dict():
            yield _csv_row(unit)
        case Unreadable():
            yield unit.source_row, unit.problem
        case _:
            yield from map(_parquet_row, unit.to_pylist())


def _csv_row(row: dict[str, str]) -> tuple[str, Mapping[str, object] | BadRow]:
    if None in row or None in row.values():
        bad = BadRow("malformed_csv", "the row has not as many cells as the header")
        return sha256_bytes(ascii(row).encode()), bad
    try:
        return sha256_bytes(canonical_json(row)), row
    except UnicodeError as error:
        return sha256_bytes(ascii(row).encode()), BadRow("not_utf8", str(error))


def _parquet_row(row: dict[str, object]) -> tuple[str, Mapping[str, object] | BadRow]:
    try:
        return sha256_bytes(canonical_json(row)), row
    except (TypeError, ValueError) as error:
        return sha256_bytes(ascii(row).encode()), BadRow("not_json", str(error))


def _parse(payload: bytes) -> Mapping[str, object] | BadRow:
    try:
        text = payload.decode("utf-8")
        value = json.loads(text) if text.startswith("\ufeff") else _DECODER.decode(text)
        if b"\\ud" in payload.lower():
            canonical_json(value)  # an escaped half of a surrogate pair has no UTF-8
    except UnicodeError as error:
        return BadRow("not_utf8", str(error))
    except (ValueError, RecursionError) as error:
        return BadRow("not_json", str(error))
    if not isinstance(value, dict):
        return BadRow("not_an_object", f"the row is a {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Readers of JSON take the first or the last of equal keys: what is hashed must not depend."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated[:60]!r} is there twice")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)
