"""Counts of raw rows by outcome, from the curation's report.json."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from data_schemas.reports import (
    EchoScore,
)
from tasks.pages import wording
from tasks.pages.inputs import parse, read

Kept = Literal["problems", "demonstrations", "held_out"]

_KEPT: dict[Kept, str] = {
    "problems": "problems to learn from",
    "demonstrations": "demonstrations to imitate",
    "held_out": "held out for evaluation",
}


class SourceCounts(BaseModel):
    """One source: items read = kept + dropped + quarantined."""

    model_config = ConfigDict(frozen=True)

    rows: int
    items: int
    kept: dict[Kept, int]
    dropped: dict[str, int]
    quarantined: dict[str, int]
    decisions: dict[str, int] = {}
    """Decisions of people about gold answers; what they dropped is among `dropped` as well."""
    solve_rates: dict[str, int] = {}
    """Problems that models solved: `matched` by one in the set before selection, or `unmatched`."""
    personal: dict[str, int] = {}
    """Items that tell something of a person, by kind; `items` are all of them."""


class ThinkingCounts(BaseModel):
    """How much the demonstrations of one source and domain think."""

    model_config = ConfigDict(frozen=True)

    demonstrations: int
    empty: int
    """Demonstrations whose think block is empty or missing."""
    confirmed: int | None = None
    """Demonstrations whose answer a verifier found right; None: an older set did not count them."""
    median_words: float
    """Median words of thinking per demonstration."""
    long_words: float | None = None
    """Words that one in ten exceeds; None as above."""


class Curation(BaseModel):
    """The counts of report.json that the page shows."""

    model_config = ConfigDict(frozen=True)

    sources: dict[str, SourceCounts]
    free_rewards: dict[str, dict[str, EchoScore]] = {}
    """By source and verifier, what texts that do no task earn."""
    thinking: dict[str, dict[str, ThinkingCounts]] = {}
    """By source and domain, of the demonstrations that are kept."""
    thinking_languages: dict[str, dict[str, ThinkingCounts]] = {}
    """By source and language."""


@dataclass(frozen=True, slots=True)
class FunnelLine:
    """One count with its bar; `width` is percent of the source's items."""

    source: str
    label: str
    count: str
    kind: str
    width: float


def read_curation(curated: Path) -> Curation:
    """Read the counts of a curation.

    Raises:
        DataError: report.json is missing or not a curation's.
    """
    path = curated / "report.json"
    return parse(read(path), Curation, str(path))


def funnel_lines(curation: Curation) -> tuple[FunnelLine, ...]:
    """Describe the funnel by source: items read, kept, dropped and quarantined."""
    return tuple(
        line for name, counts in curation.sources.items() for line in _source_lines(name, counts)
    )


def funnel_note(curation: Curation) -> str:
    """Sum the funnel up in a sentence."""
    sources = curation.sources.values()
    items = sum(counts.items for counts in sources)
    dropped = sum(sum(counts.dropped.values()) for counts in sources)
    quarantined = sum(sum(counts.quarantined.values()) for counts in sources)
    return (
        f"{wording.count(items)} items from {wording.count(sum(c.rows for c in sources))} rows; "
        f"{wording.count(dropped)} dropped (sound, but not wanted here), "
        f"{wording.count(quarantined)} quarantined (broken). Each has its reason."
    )


def _source_lines(name: str, counts: SourceCounts) -> Iterator[FunnelLine]:
    def line(label: str, number: int, kind: str, source: str = "") -> FunnelLine:
        width = round(100 * number / max(counts.items, 1), 2)
        return FunnelLine(source, label, wording.count(number), kind, width)

    yield line("items read", counts.items, "", source=name)
    for kind in sorted(counts.kept, key=list(_KEPT).index):
        if counts.kept[kind]:
            yield line(_KEPT[kind], counts.kept[kind], "good")
    for outcome, kind, reasons in (
        ("dropped", "", counts.dropped),
        ("quarantined", "bad", counts.quarantined),
    ):
        for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            yield line(f"{outcome}: {reason.replace('_', ' ')}", number, kind)
    for decision, number in sorted(counts.decisions.items()):
        yield line(f"people decided: {decision}", number, "")
    for outcome, number in sorted(counts.solve_rates.items()):
        yield line(f"solve rates: {outcome}", number, "")
