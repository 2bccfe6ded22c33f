"""What was released under a name, when and by what, and which candidates were refused.

eachprompt history --store runs --model eachprompt-tiny
"""

import time
from collections.abc import Sequence

from rich import box
from rich.table import Table

from data_schemas.artifacts import StoreRef
from data_schemas.texts import on_one_line
from tasks.platform.tables import show_table
from tasks.provenance.lineage.descriptions import EXECUTION
from tasks.provenance.lineage.registry import AUDIT_TAG, PromotionEntry
from tasks.provenance.lineage.versions import RegisteredVersion, read_candidates, read_history

_COLUMNS = ("when (UTC)", "version", "by", "accuracy", "audit", "execution", "aliases")


def rows(
    candidates: Sequence[RegisteredVersion], promotions: Sequence[PromotionEntry]
) -> list[tuple[str, ...]]:
    """Return one row per promotion and per refused candidate, in the order of time."""
    by_number = {candidate.number: candidate for candidate in candidates}
    promoted = {promotion.version for promotion in promotions}
    events = [(one.time, one.version, one.by) for one in promotions]
    events += [
        (one.created, one.number, "refused") for one in candidates if one.number not in promoted
    ]
    return [
        _row(moment, by_number.get(number), number, by) for moment, number, by in sorted(events)
    ]


def _row(
    moment: float, candidate: RegisteredVersion | None, number: str, by: str
) -> tuple[str, ...]:
    tags = candidate.tags if candidate else {}
    return (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)),
        number if candidate else f"{number} (deleted)",
        by,
        tags.get("accuracy/all", ""),
        tags.get(AUDIT_TAG, "").partition(":")[0],
        tags.get(EXECUTION, ""),
        ", ".join(candidate.aliases) if candidate else "",
    )


def show(name: str, store: StoreRef) -> None:
    """Print the promotions and the refused candidates of a model."""
    promotions = read_history(name, store.tracking_uri)
    table = Table(*_COLUMNS, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows(read_candidates(name, store.tracking_uri), promotions):
        table.add_row(*map(on_one_line, row))
    show_table(table)
