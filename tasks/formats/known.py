"""Rows that a released model knows: those of its curated sets that it was allowed to learn from.

A night leaves the rows of files aside that people have to look at. They are in the curated set of
that night, and its mixture names their files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from data_schemas.arrow import read_table
from data_schemas.rows import ASIDE, ROWS, Aside, Demonstration, Problem
from data_schemas.rows import REPORT as MIX_REPORT
from data_schemas.sources import RowPlace

Row = TypeVar("Row", Problem, Demonstration)


def read_known(sets: Mapping[str, Path], name: str, model: type[Row]) -> list[Row]:
    """Read one table of all curated sets.

    Args:
        sets: folder by digest, of curated sets and of mixtures; the latter only leave rows out.
        name: of the table.
        model: of its rows.
    """
    mixtures = {folder for folder in sets.values() if (folder / MIX_REPORT).exists()}
    aside: dict[str, set[str]] = {}
    for folder in mixtures:
        if (folder / ASIDE).exists():
            exclusion = Aside.model_validate_json((folder / ASIDE).read_bytes())
            aside.setdefault(exclusion.curated, set()).update(exclusion.files)
    return [
        row
        for digest, folder in sets.items()
        if folder not in mixtures
        for row_digests in (rows_of_files(folder, aside.get(digest, set())),)
        for row in read_table(folder / name, model)
        if row.source_row not in row_digests
    ]


def rows_of_files(curated: Path, files: set[str]) -> set[str]:
    """Return the source rows of a curated set that are in these files only.

    Args:
        curated: its folder.
        files: sha256 of each.
    """
    if not files:
        return set()
    places = read_table(curated / ROWS, RowPlace)
    elsewhere = {place.source_row for place in places if place.file not in files}
    return {place.source_row for place in places} - elsewhere
