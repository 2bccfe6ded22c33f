"""Stream the rows of raw files, each with the hash of its bytes.

Reads JSON lines and parquet. A row that cannot be read is returned as an UnreadableRow at
its position, so that no row is lost silently. Blank lines are not rows.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import DataError
from tasks.store.files import canonical_json, sha256_bytes

SUFFIXES = (".jsonl", ".parquet")


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
    """sha256 of the line without its line ending, or of the parquet row as canonical JSON."""
    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return a string field with normalised line endings and surrounding blanks removed.

        Raises:
            BadRow: the field is missing, not a string or blank.
        """
        value = self.fields.get(name)
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
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise BadRow("missing_field", f"{name!r} is {type(value).__name__}, not a list")
        if not value and not may_be_empty:
            raise BadRow("empty_field", f"{name!r} is an empty list")
        return value


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A raw row that is not a JSON object."""

    key: str
    source_row: str
    problem: BadRow


def tidy(text: str) -> str:
    """Write every line ending as a newline and remove blanks at both ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def read_rows(path: Path) -> Iterator[RawRow | UnreadableRow]:
    """Stream the rows of a file, in order."""
    rows = _read_parquet(path) if path.suffix == ".parquet" else _read_lines(path)
    for number, (source_row, fields) in enumerate(rows, start=1):
        key = f"{path.stem}-{number}"
        if isinstance(fields, BadRow):
            yield UnreadableRow(key, source_row, fields)
        else:
            yield RawRow(key, source_row, fields)


def check_readable(path: Path) -> None:
    """Check that the rows of a file can be streamed.

    Raises:
        DataError: the format is unknown, or differs from the suffix.
    """
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path} is not one of {', '.join(SUFFIXES)}. Convert it first.")
    try:
        if path.suffix == ".parquet":
            pq.read_schema(path)
        else:
            path.open("rb").close()
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}. Replace the file.") from error


def _read_lines(path: Path) -> Iterator[tuple[str, Mapping[str, object] | BadRow]]:
    with path.open("rb") as stream:
        for line in stream:
            payload = line.rstrip(b"\r\n")
            if payload.strip():
                yield sha256_bytes(payload), _parse(payload)


def _parse(payload: bytes) -> Mapping[str, object] | BadRow:
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_refuse_constant)
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


def _read_parquet(path: Path) -> Iterator[tuple[str, Mapping[str, object] | BadRow]]:
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=1024):
            for row in batch.to_pylist():
                try:
                    yield sha256_bytes(canonical_json(row)), row
                except (TypeError, ValueError) as error:
                    yield sha256_bytes(ascii(row).encode()), BadRow("not_json", str(error))
