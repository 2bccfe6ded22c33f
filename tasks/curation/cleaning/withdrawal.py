"""Leave out the rows that were withdrawn.

Files with the adapter `withdrawn` are exclusion lists, wherever they stand among the sources.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from data_schemas.rows import Outcome
from data_schemas.sources import RawFile
from tasks.curation.ingest import locate
from tasks.curation.items import Item, Partition, refuse
from tasks.formats.exclusions import LIST_FILE, WITHDRAWN, read_list, write_list

STAGE = "withdrawal"
REASON = "withdrawn"


def withdrawn_rows(
    raw: Path, files: Sequence[RawFile], held_out_from: Path | None, out: Path
) -> frozenset[str]:
    """Collect the rows to leave out, and write their list into the curated set.

    Args:
        raw: folder that `ingest` wrote.
        files: listed there.
        held_out_from: the earlier curated set whose suites and exclusions are reused, if any.
        out: folder of the curated set; gets no list if nothing is to be left out.

    Raises:
        DataError: a list cannot be read.
    """
    lists = [locate(raw, file) for file in files if file.adapter == WITHDRAWN]
    if held_out_from is not None and (held_out_from / LIST_FILE).exists():
        lists.append(held_out_from / LIST_FILE)
    rows = frozenset[str]().union(*map(read_list, lists))
    if rows:
        write_list(out / LIST_FILE, rows)
    return rows


def withdraw(items: Sequence[Item], rows: AbstractSet[str]) -> Partition:
    """Quarantine every item that was made of a withdrawn row.

    Args:
        items: before any other filter, so that no duplicate of a withdrawn item is dropped as such.
        rows: sha256 of raw rows.
    """
    survivors = [item for item in items if item.record.source_row not in rows]
    refused = [
        refuse(item, STAGE, Outcome.QUARANTINED, REASON, "named by the exclusion list")
        for item in items
        if item.record.source_row in rows
    ]
    return survivors, refused
