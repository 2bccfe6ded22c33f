"""Rows that could not be read: what a curated set lacks, and why."""

from collections import Counter
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.rows import QUARANTINE, QuarantinedItem
from tasks.curation.ingest import GENERATED
from tasks.curation.rows import UNREADABLE
from tasks.errors import DataError

_UNCOUNTED = "damaged_file"
"""The one reason whose number says nothing: behind that place nobody can count rows."""


TRAIN_ON_IT = (
    "To train on it, start `eachprompt run` with the same settings; to have all rows, replace or "
    "repair the files and curate again."
)
IS_USED = "It was used; to have all rows, replace or repair the files and start again."


def require_whole(curated: Path, uri: str, remedy: str = TRAIN_ON_IT) -> None:
    """Refuse a curated set whose files had rows that could not be read.

    What the project generates is damaged on purpose, and is no file of anybody.

    Args:
        curated: folder of the set, which is complete but for these rows.
        uri: where the set is kept.
        remedy: what to do, or what became of the set.

    Raises:
        DataError: says how many rows are lost, an example of each source, and how to go on.
    """
    reasons: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for row in read_table(curated / QUARANTINE, QuarantinedItem):
        if row.reason in UNREADABLE and row.source not in GENERATED:
            reasons[row.reason] += 1
            examples.setdefault(row.source, f"{row.key}: {row.detail}")
    if not reasons:
        return
    more = ", and nobody knows how many behind a damaged place" if reasons[_UNCOUNTED] else ""
    counts = ", ".join(f"{name} {count:,}" for name, count in reasons.most_common())
    cases = "; ".join(examples.values())
    raise DataError(
        f"{reasons.total():,} rows could not be read{more}: {counts}. For example {cases}. "
        f"The set without them is complete: {uri}. {remedy}"
    )
