"""Files in which people decide about rows: golds that models doubt, rows withdrawn."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from data_schemas.rows import Annotation, GoldDecision
from tasks.errors import DataError
from tasks.formats.yaml_file import read_lines
from tasks.store.files import canonical_json, write_bytes

# The file in which people decide about gold answers that models doubt.
#
# `evaluate` and `verify_answers` write a line for each doubtful answer, with a blank `decision`.
# People fill in `decision`, `by` and `at`, and for `correct` the `correction`. The file is then a
# source of curation with the adapter `decisions`, so its content is part of the chain.

ADAPTER = "decisions"
"""Name of such a source in the settings."""
FILE = "annotate.jsonl"
"""For people."""


def write_annotations(path: Path, annotations: Iterable[Annotation]) -> None:
    """Write the file, one problem per line."""
    lines = (canonical_json(one.model_dump(mode="json")) + b"\n" for one in annotations)
    write_bytes(path, b"".join(lines))


def read_decisions(paths: Iterable[Path]) -> dict[str, Annotation]:
    """Read what was decided, by problem; lines without a decision are skipped.

    Raises:
        DataError: a line cannot be read, or a problem is decided twice; nothing may be trained
            while it is unclear what was decided.
    """
    decisions: dict[str, Annotation] = {}
    for path in paths:
        for where, one in read_lines(path, Annotation):
            if one.decision is GoldDecision.NONE:
                continue
            if one.problem in decisions:
                raise DataError(
                    f"{where}: {one.problem} is decided twice. Remove one of the lines."
                )
            decisions[one.problem] = one
    return decisions


# Exclusion lists: raw rows that no curated set may hold any more.
#
# A list is a file of JSON lines, {"source_row": sha256 of a raw row}. It is a source of curation
# with the adapter `withdrawn`, so its content is part of the chain. A curated set keeps the list
# it was made with, and sets whose held-out suites come from it leave the same rows out.

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
