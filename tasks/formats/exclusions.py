"""Exclusion lists: raw rows that no curated set may hold any more.

A list is a file of JSON lines, {"source_row": sha256 of a raw row}. It is a source of curation
with the adapter `withdrawn`, so its content is part of the chain. A curated set keeps the list
it was made with, and sets whose held-out suites come from it leave the same rows out.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from tasks.errors import DataError
from tasks.store.files import canonical_json, write_bytes

WITHDRAWN = "withdrawn"
"""Name of such a source in the settings."""
LIST_FILE = "withdrawn.jsonl"
"""In a curated set, if anything was withdrawn."""
_SHA256 = re.compile("[0-9a-f]{64}")


def list_bytes(rows: Iterable[str]) -> bytes:
    """Return an exclusion list; equal rows give equal bytes."""
    return b"".join(canonical_json({"source_row": row}) + b"\n" for row in sorted(set(rows)))


def write_list(path: Path, rows: Iterable[str]) -> None:
    write_bytes(path, list_bytes(rows))


def read_list(path: Path) -> frozenset[str]:
    """Read an exclusion list from a file.

    Raises:
        DataError: see `parse_list`.
    """
    return parse_list(path.read_bytes(), str(path))


def parse_list(payload: bytes, where: str) -> frozenset[str]:
    """Read an exclusion list.

    Raises:
        DataError: a line names no row; nothing may be trained while it is unclear what is excluded.
    """
    rows: list[str] = []
    for number, line in enumerate(payload.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)["source_row"]
        except (ValueError, KeyError, TypeError):
            row = ""
        if not isinstance(row, str) or not _SHA256.fullmatch(row):
            raise DataError(
                f"{where}, line {number}: {line[:80]!r} is not "
                '{"source_row": sha256 of a raw row}. '
                "Correct it; no row is left out by guessing."
            )
        rows.append(row)
    return frozenset(rows)
