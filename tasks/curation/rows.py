"""Stream the rows of raw files, each with the hash of its bytes.

Reads JSON lines, tables of cells with a header (divided by commas, semicolons, tabs or bars),
Parquet and workbooks; the first two also compressed. How cells are read is in `readers`. A row that
cannot be read is returned as an UnreadableRow at its position, and so is every line of a table and
every row of a group of a Parquet file that is damaged, so that no row is lost silently. Blank lines
are not rows, and a byte order mark at the start of a file is part of none. A table with two columns
of one name is refused whole: a row can have one of them.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from data_schemas.json_text import each_key_once
from tasks.curation.readers.cells import column_cells, unread_in
from tasks.curation.readers.letters import other_encoding
from tasks.curation.readers.spreadsheets import read_workbook
from tasks.errors import DataError
from tasks.formats.delimited import (
    COMPRESSIONS,
    DamagedLine,
    header_of,
    open_bytes,
    open_text,
    read_delimited,
)
from tasks.formats.delimited import SUFFIXES as TABLES
from tasks.store.files import canonical_json, sha256_bytes, sha256_file
from tasks.store.pointers import is_pointer

_PARQUET, _WORKBOOK = ".parquet", ".xlsx"
SUFFIXES = (
    *(f"{kind}{packed}" for kind in (".jsonl", *TABLES) for packed in COMPRESSIONS),
    *(_PARQUET, _WORKBOOK),
)
"""In small letters; a file's own may be in any."""
_MARK = "\ufeff"
"""Byte order mark, which each file has brought along where several were put together."""
_BATCH = 1024
"""Rows of a parquet file that are read at once."""
_ENCODING_SAMPLE = 2**16
"""First bytes of a file of which the encoding is told."""
_SHOWN_NAMES = 3
"""Names of a header that are shown beside a row that does not fit it."""
_MAGIC = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"BZh": ".bz2",
    b"\x04\x22\x4d\x18": ".lz4",
}
"""First bytes of compressed files."""
_FORMATS = {
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"\xd0\xcf\x11\xe0": "a workbook with a password, or of Excel before 2007. Save it as .xlsx",
    b"\xfd7zXZ": "compressed with xz. Unpack it first",
    b"7z\xbc\xaf": "an archive of 7-Zip. Unpack it first",
    b"SQLite format 3": "a database. Export a table of it as CSV",
    b"%PDF": "a PDF document. Export the table that it was made from",
    b"ARROW1": "a file of Arrow. Write it as Parquet",
    b"FEA1": "a file of Feather. Write it as Parquet",
}
"""First bytes of what is read under another name, or can be."""
_BINARY = {_PARQUET: (b"PAR1", b"PARE"), _WORKBOOK: (b"PK",)}
"""First bytes of the files that are no text; `PARE` is encrypted."""
# "<!DOCTYPE html>", "<?xml", "<table><tr>", "<rss version=...>"; no header as "<title>,<kind>".
_PAGE = re.compile(rb"\s*<(?:!|\?|html\b|[a-z][\w:.-]*(?:\s[^<>]*)?>\s*(?:<|$))", re.IGNORECASE)


_REMEDIES = {
    (".json", ".ndjson"): "If each line is an object, let its name end in .jsonl; of one list make "
    "lines: jq -c '.[]'",
    (".xls", ".xlsm", ".xlsb", ".ods", ".numbers"): "Save it as .xlsx",
    (".zip", ".tar", ".tgz", ".7z", ".rar"): "Unpack it first",
    (".arrow", ".feather"): "Write it as Parquet: Dataset.from_file(NAME).to_parquet(...) of "
    "`datasets`",
    (".eval",): "Of a log of Inspect write the samples: inspect log dump NAME | jq -c '.samples[]'",
    (".txt", ".dat", ".psv"): "If it is a table with a header, let its name end in .csv or .tsv",
}
"""What to do with files of other suffixes."""


UNREADABLE = frozenset(
    (
        *("damaged_file", "damaged_rows", "unclosed_quote", "malformed_csv", "repeated_column"),
        *("not_json", "not_utf8", "not_an_object", "unknown_suffix"),
    )
)
"""Reasons of an UnreadableRow: what its file holds there is lost."""


class BadRow(DataError):
    """This raw row yields no item; `reason` is the code it is counted under."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class ReadableCells(Mapping[str, object]):
    """The cells of a row of which some are unread: to take one of those is refused.

    So an adapter that takes cells by itself, whoever wrote it, neither reads an UnreadCell as text
    nor takes it for a cell that is not there.
    """

    def __init__(self, cells: Mapping[str, object]) -> None:
        self.cells = cells
        """As they are."""

    def __getitem__(self, name: str) -> object:
        """Return a cell.

        Raises:
            BadRow: it, or a part of it, is unread.
        """
        value = self.cells[name]
        if unread := unread_in(value):
            raise BadRow("unread_cell", f"{name!r}: {unread.problem}")
        return value

    def __contains__(self, name: object) -> bool:
        """Whether the row has a column, which may be unread."""
        return name in self.cells

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of columns."""
        return iter(self.cells)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.cells)


@dataclass(frozen=True, slots=True)
class RawRow:
    """One raw row as an adapter sees it."""

    key: str
    """'<file name without suffix>-<row number from 1>'."""
    source_row: str
    """sha256 of the line without its line ending and the file's byte order mark; CSV and parquet
    rows as canonical JSON."""
    fields: Mapping[str, object]
    """By column; to take a cell that is unread is a BadRow."""
    is_columnar: bool = False
    """Every row has every key there, and null where another format has no key."""

    @property
    def cells(self) -> Mapping[str, object]:
        """The fields as they are, with an UnreadCell where one is: for who uses parts of a cell."""
        return self.fields.cells if isinstance(self.fields, ReadableCells) else self.fields

    def gold(self, value: object) -> object:
        """Return what a verifier compares with: without the keys that only a column store fills."""
        return _without_nulls(value) if self.is_columnar else value

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

    def optional(self, name: str, default: object = "") -> object:
        """Return a field that a row may lack, or have as a null: both are the default.

        Raises:
            BadRow: the cell is unread.
        """
        value = self.fields.get(name)
        return default if value is None else value

    def texts(self, name: str) -> list[str]:
        """Return a list field whose parts are scalars, as texts.

        Raises:
            BadRow: the field is missing, no list or empty, or a part is null or no scalar.
        """
        return as_texts(self.items(name), name)

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
class UnreadablePlace:
    """A place of a file that no row can be read from."""

    source_row: str
    problem: BadRow


Unit = bytes | dict[str, object] | pa.RecordBatch | UnreadablePlace
"""A line without its ending, a row of a table, several rows of a parquet file, or damage."""


def has_suffix(name: str) -> bool:
    """Whether a file is read, by the end of its name, whatever the case of its letters."""
    return name.lower().endswith(SUFFIXES)


def as_texts(value: object, name: str) -> list[str]:
    """Write a list of scalars as texts.

    Raises:
        BadRow: it is no list, or a part is null or no scalar; names the column.
    """
    if not isinstance(value, list):
        raise BadRow("missing_field", f"{name!r} is {type(value).__name__}, not a list")
    parts = cast("list[object]", value)
    for place, part in enumerate(parts):
        if part is None or isinstance(part, Mapping | list):
            raise BadRow("missing_field", f"'{name}.{place}' is {type(part).__name__}, not text")
    return [str(part) for part in parts]


def tidy(text: str) -> str:
    """Write every line ending as a newline and remove blanks at both ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def read_rows(path: Path) -> Iterator[RawRow | UnreadableRow]:
    """Stream the rows of a file, in order."""
    return decode(path.stem, 1, read_units(path))


def read_units(path: Path) -> Iterator[Unit]:
    """Stream what a file holds without parsing more of it than rows begin and end with.

    Where nothing behind a damaged place can be read, the last unit is the damage, reason
    `damaged_file`: how many rows are lost there, nobody knows.
    """
    number = 0
    try:
        for unit in _reader(path):
            number += num_rows(unit)
            yield unit
    except (pa.ArrowException, OSError, EOFError, DataError) as error:
        bad = BadRow("damaged_file", f"{path.name} after row {number}: {error}")
        yield UnreadablePlace(sha256_bytes(ascii(bad).encode()), bad)


def decode(stem: str, first: int, units: Iterable[Unit]) -> Iterator[RawRow | UnreadableRow]:
    """Parse units into rows.

    Args:
        stem: of the file's name.
        first: number of the first row in its file.
        units: of one file, in order.
    """
    rows = ((isinstance(unit, pa.RecordBatch), row) for unit in units for row in _decode(unit))
    for number, (is_columnar, (source_row, fields)) in enumerate(rows, start=first):
        key = f"{stem}-{number}"
        if isinstance(fields, BadRow):
            yield UnreadableRow(key, source_row, fields)
        else:
            yield RawRow(key, source_row, fields, is_columnar)


def _without_nulls(value: object) -> object:
    """Remove keys whose value is null; a null in a list is a value."""
    match value:
        case Mapping():
            cells = cast("Mapping[str, object]", value)
            return {key: _without_nulls(one) for key, one in cells.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in cast("list[object]", value)]
        case _:
            return value


def num_rows(unit: Unit) -> int:
    """Return how many rows a unit has."""
    return 1 if isinstance(unit, bytes | dict | UnreadablePlace) else unit.num_rows


def first_rows(unit: Unit, count: int) -> Unit:
    """Return the first rows of a unit that has more."""
    return unit if isinstance(unit, bytes | dict | UnreadablePlace) else unit.slice(0, count)


def num_bytes(unit: Unit) -> int:
    """Return about how much memory a unit takes."""
    if isinstance(unit, bytes):
        return len(unit)
    return len(repr(unit)) if isinstance(unit, dict | UnreadablePlace) else unit.nbytes


def check_readable(path: Path) -> None:
    """Check that the rows of a file can be streamed.

    Raises:
        DataError: the format is unknown, or differs from the suffix, or two columns have one name.
    """
    if not has_suffix(path.name):
        own = {path.suffix.lower(), _kind(path)}
        remedy = next((do for ends, do in _REMEDIES.items() if own & {*ends}), "Convert it first")
        raise DataError(f"{path} is not one of {', '.join(SUFFIXES)}. {remedy}.")
    try:
        if is_pointer(path):
            raise DataError(f"{path} is a pointer of Git LFS and not the file: git lfs pull")
        with open_bytes(path) as stream:
            start = stream.read(_ENCODING_SAMPLE)
        if problem := _other_contents(start, _kind(path)):
            raise DataError(f"{path} is {problem}")
        if problem := _repeated_column(_columns(path)):
            raise DataError(f"{path} has {problem}. Rename or remove one")
    except (pa.ArrowException, OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}. Replace the file.") from error


def _other_contents(start: bytes, kind: str) -> str:
    """Say that a file is none of its kind, or in another encoding; '' if it may be one."""
    if kind in _BINARY:
        return "" if start.startswith(_BINARY[kind]) else _other_format(start)
    if problem := _other_format(start) or other_encoding(start):
        return problem
    return _other_json(start) if kind == ".jsonl" else _json_as_table(start)


def _other_format(start: bytes) -> str:
    """Say that bytes are those of a compressed file or a workbook; '' if they are not."""
    if packed := next((end for magic, end in _MAGIC.items() if start.startswith(magic)), ""):
        return f"compressed: let its name end in {packed}"
    if start[:4] == b"PK\3\4":
        return "a workbook or another archive: let its name end in .xlsx"
    if known := next((what for magic, what in _FORMATS.items() if start.startswith(magic)), ""):
        return known
    if b"\0" in start.partition(b"\n")[0] and not other_encoding(start):
        return "no text, as its first line has bytes that are no letters. Export it as CSV or JSON"
    is_page = _PAGE.match(start)
    return "a web page or XML, as a failed download leaves it. Download it again" if is_page else ""


def _other_json(start: bytes) -> str:
    """Say that a file is one JSON document and not a row a line; '' if it may be lines."""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text[:1] == b"[":
        if re.match(rb"\[.*\]\s*\n\s*\[", text):
            return "a JSON list a line and not an object. Of chats: jq -c '{messages: .}'"
        return "one JSON list and not an object a line. Convert it: jq -c '.[]'"
    if text and not re.search(rb"^[\s\x1e]*[{\"]", text, re.MULTILINE):
        return "no JSON, as no line begins an object. A table's name ends in .csv or .tsv"
    first, _, others = text.partition(b"\n")
    if _has_two_objects(first):
        return "of objects that no line end divides. Convert it: jq -c ."
    if first.rstrip().endswith(b"},") and others.strip():
        return "of objects that commas divide. Remove these: sed 's/,[[:space:]]*$//'"
    is_split = first.strip() == b"{" and others.strip()
    return "one JSON object over several lines. Convert it: jq -c ." if is_split else ""


def _json_as_table(start: bytes) -> str:
    """Say that a table's first line is an object or a list of JSON; '' if it is not."""
    first = start.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].rstrip()
    is_json = first in (b"[", b"{") or first.startswith((b'{"', b'[{"'))
    return "JSON and no table: let its name end in .jsonl" if is_json else ""


def _has_two_objects(line: bytes) -> bool:
    text = line.decode(errors="replace")
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip().startswith("{")


def _columns(path: Path) -> Sequence[str]:
    """Return the names of a table's columns; of JSON lines, and of a broken header, none."""
    match _kind(path):
        case ".parquet":
            return pq.read_schema(path).names
        case ".xlsx":
            return _names(next(read_workbook(path)))
        case ".jsonl":
            return ()
        case _:
            with open_text(path) as text:
                return header_of(text)


def _repeated_column(names: Sequence[str]) -> str:
    """Name a column that is there twice; '' if none is. One without a name is read by nothing."""
    repeated = next((name for name, count in Counter(names).items() if name and count > 1), "")
    return f"two columns named {repeated[:60]!r}, of which a row can have one" if repeated else ""


def _kind(path: Path) -> str:
    """Return the suffix of a file without that of its compression, in small letters."""
    name = path.name.lower()
    packed = next((one for one in COMPRESSIONS if one and name.endswith(one)), "")
    return Path(name.removesuffix(packed)).suffix


def _unread(path: Path, problem: str) -> UnreadablePlace:
    """Stand for all rows of a table that has two columns of one name."""
    return UnreadablePlace(
        sha256_file(path), BadRow("repeated_column", f"{path.name} has {problem}")
    )


def _reader(path: Path) -> Iterator[Unit]:
    if not has_suffix(path.name):
        bad = BadRow("unknown_suffix", f"{path.name} is not one of {', '.join(SUFFIXES)}")
        return iter([UnreadablePlace(sha256_file(path), bad)])
    match _kind(path):
        case ".parquet":
            return _read_parquet(path)
        case ".xlsx":
            return _read_workbook(path)
        case kind:
            with open_bytes(path) as stream:
                problem = _other_format(stream.read(_ENCODING_SAMPLE))
            if problem:
                raise DataError(f"it is {problem}")
            return _read_lines(path) if kind == ".jsonl" else _read_table(path)


def _read_lines(path: Path) -> Iterator[bytes]:
    with open_bytes(path) as stream:
        for number, line in enumerate(stream):
            whole = line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
            payload = whole.rstrip(b"\r\n")
            if payload.strip():
                yield payload


def _read_table(path: Path) -> Iterator[dict[str, object] | UnreadablePlace]:
    with open_text(path) as text:
        rows = read_delimited(text)
        names = cast("list[str]", next(rows))
        if problem := _repeated_column(names):
            yield _unread(path, problem)
            return
        for row in rows:
            yield _damaged(path, row) if isinstance(row, DamagedLine) else _named(names, row)


def _damaged(path: Path, line: DamagedLine) -> UnreadablePlace:
    payload = line.text.rstrip("\r\n").encode(errors="surrogateescape")
    bad = BadRow("unclosed_quote", f"{path.name}, line {line.number}: {line.cause}")
    return UnreadablePlace(sha256_bytes(payload), bad)


def _named(names: Sequence[str], cells: Sequence[object]) -> dict[str, object] | UnreadablePlace:
    """Give cells the names of their columns."""
    if len(cells) == len(names):
        if len(names) > 1 and [str(cell).removeprefix(_MARK) for cell in cells] == [*names]:
            bad = BadRow("repeated_header", "the row has the names of the columns")
            return UnreadablePlace(sha256_bytes(ascii(cells).encode()), bad)
        return dict(zip(names, cells, strict=True))
    header = ", ".join(map(repr, names[:_SHOWN_NAMES])) + ", ..." * (len(names) > _SHOWN_NAMES)
    detail = f"the row has {len(cells)} cells, and the header, its file's first line, {len(names)}"
    detail += f": {header}"
    if len(cells) == len(names) + 1 and not str(cells[-1]).strip():
        detail += ". Remove the delimiter at the ends of lines"
    return UnreadablePlace(sha256_bytes(ascii(cells).encode()), BadRow("malformed_csv", detail))


def _read_workbook(path: Path) -> Iterator[dict[str, object] | UnreadablePlace]:
    rows = read_workbook(path)
    names = _names(next(rows))
    if problem := _repeated_column(names):
        yield _unread(path, problem)
        return
    for row in rows:
        yield _named(names, [*row, *[""] * (len(names) - len(row))])


def _names(header: Sequence[object]) -> list[str]:
    return [str(name) for name in header]


def _read_parquet(path: Path) -> Iterator[pa.RecordBatch | UnreadablePlace]:
    with pq.ParquetFile(path, page_checksum_verification=True) as table:
        if problem := _repeated_column(table.schema_arrow.names):
            yield _unread(path, problem)
            return
        number = 0
        for group in range(table.num_row_groups):
            for unit in _read_group(path, table, group):
                number += num_rows(unit)
                yield unit
        if number != table.metadata.num_rows:
            raise DataError(f"{table.metadata.num_rows} rows were written, says the file")


def _read_group(
    path: Path, table: pq.ParquetFile, group: int
) -> Iterator[pa.RecordBatch | UnreadablePlace]:
    """Yield the rows of a group; where they cannot be read, their number is still known."""
    number, cause = 0, "the group has fewer rows than the file says"
    try:
        for batch in table.iter_batches(batch_size=_BATCH, row_groups=[group]):
            yield batch
            number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        cause = str(error).partition("\n")[0]
    bad = BadRow("damaged_rows", f"{path.name}, row group {group} after row {number}: {cause}")
    for row in range(number, table.metadata.row_group(group).num_rows):
        yield UnreadablePlace(sha256_bytes(ascii((path.name, group, row, cause)).encode()), bad)


def _decode(unit: Unit) -> Iterator[tuple[str, Mapping[str, object] | BadRow]]:
    match unit:
        case bytes():
            yield sha256_bytes(unit), _parse(unit)
        case dict():
            yield _row(unit)
        case UnreadablePlace():
            yield unit.source_row, unit.problem
        case _:
            columns = [column_cells(column) for column in unit.columns]
            for cells in zip(*columns, strict=True):
                yield _row(dict(zip(unit.schema.names, cells, strict=True)))


def _row(row: dict[str, object]) -> tuple[str, Mapping[str, object] | BadRow]:
    try:
        return sha256_bytes(canonical_json(row)), row
    except TypeError:  # a cell has no form in JSON
        return sha256_bytes(ascii(row).encode()), ReadableCells(row)
    except ValueError as error:  # half of a surrogate pair, which has no UTF-8
        return sha256_bytes(ascii(row).encode()), BadRow("not_utf8", str(error))


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


# NaN and Infinity, as Python writes what pandas has no value for, are cells as in a Parquet file.
_DECODER = json.JSONDecoder(parse_constant=str, object_pairs_hook=each_key_once)
