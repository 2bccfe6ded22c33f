"""The page of a curated set: one HTML file in the style of the run's report."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data_schemas.pass_rates import Band, band_of
from data_schemas.reports import EchoScore
from data_schemas.subjects import CLASSES
from tasks.pages import figures, wording
from tasks.pages.curated_contents import (
    MAX_CLUSTERS,
    MAX_SUBJECTS,
    Contents,
    CuratedSample,
    ExcludedItem,
    read_contents,
)
from tasks.pages.curation_section import (
    Curation,
    Kept,
    SourceCounts,
    ThinkingCounts,
    read_curation,
)
from tasks.pages.curation_template import PAGE
from tasks.pages.sections import Chart
from tasks.pages.style import STYLE
from tasks.platform.page_style import fill

BANDS = {
    Band.UNSOLVED: "never",
    Band.HARD: "below 1/3",
    Band.MEDIUM: "1/3 to 2/3",
    Band.EASY: "above 2/3",
    Band.SOLVED: "always",
}
"""Headings of the shares of problems that a model solves so often."""
CURATION_PAGE = ".curation.html"
"""End of the name of a run's page of curation."""


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One reason of one source, with examples."""

    label: str
    stage: str
    count: str
    kind: str
    examples: Sequence[ExcludedItem]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What became of the items of one source; widths are percent of them."""

    name: str
    rows: str
    items: str
    survivors: str
    left_out: str
    bars: Sequence[tuple[str, float]]
    decisions: str
    solve_rates: str
    personal: str
    free: str
    reasons: Sequence[ReasonLine]


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """One kept item and its copies."""

    key: str
    count: str
    text: str
    members: Sequence[ExcludedItem]


@dataclass(frozen=True, slots=True)
class FamilyLine:
    """One domain or language; the width is percent of all problems."""

    name: str
    counts: Sequence[str]
    share: str
    width: float


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Samples of one domain and language."""

    title: str
    note: str
    samples: Sequence[CuratedSample]


def render_curation(curated: Path, title: str, note: str = "") -> bytes:
    """Render the page of a curated set.

    Args:
        curated: folder of the set.
        title: of the page.
        note: what it belongs to, above the title.

    Raises:
        DataError: the folder has no report of a curation.
    """
    curation, contents = read_curation(curated), read_contents(curated)
    html = fill(
        PAGE,
        title=title,
        note=note,
        style=STYLE,
        headline=_headline(curation),
        tiles=_tiles(curation),
        personal=_personal(curation),
        sources=[
            _source_line(name, counts, contents, curation.free_rewards.get(name, {}))
            for name, counts in curation.sources.items()
        ],
        clusters=list(_clusters(contents)),
        clusters_note=_clusters_note(contents),
        suites=sorted({suite for _, suite in contents.leaks}),
        leaks=_leak_table(contents.leaks),
        charts=list(_charts(contents)),
        domains=_families(contents, 0),
        languages=_families(contents, 1),
        thinking={
            "domain": list(_thinking(curation.thinking)),
            "language": list(_thinking(curation.thinking_languages)),
        },
        subjects=[
            ("subject, as sources name it", list(_subjects(contents.subjects))),
            ("class of the MSC 2020", list(_subjects(_classes(contents.classes)))),
        ],
        bands=BANDS.values(),
        models=list(_models(contents.pass_rates)),
        groups=[
            SampleGroup(
                f"{domain.replace('_', ' ')}, {language}", f"{len(samples)} of "
                f"{wording.count(_trained(contents, (domain, language)))}", samples,
            )
            for (domain, language), samples in sorted(contents.samples.items())
        ],
    )  # fmt: skip
    return html.encode()


def _total(curation: Curation, kind: Kept) -> int:
    return sum(counts.kept.get(kind, 0) for counts in curation.sources.values())


def _headline(curation: Curation) -> str:
    counts = curation.sources.values()
    items, survivors = sum(c.items for c in counts), sum(sum(c.kept.values()) for c in counts)
    share = wording.percent(survivors / items) if items else "none"
    return f"{wording.count(survivors)} of {wording.count(items)} items are in the set ({share})."


def _tiles(curation: Curation) -> list[tuple[str, str, str]]:
    counts = curation.sources.values()
    dropped = sum(sum(c.dropped.values()) for c in counts)
    quarantined = sum(sum(c.quarantined.values()) for c in counts)
    sources = "1 source" if len(counts) == 1 else f"{len(counts)} sources"
    return [
        ("Raw rows", wording.count(sum(c.rows for c in counts)), sources),
        ("Problems", wording.count(_total(curation, "problems")),
         f"{wording.count(_total(curation, 'held_out'))} more held out"),
        ("Demonstrations", wording.count(_total(curation, "demonstrations")), "to imitate"),
        ("Left out", wording.count(dropped + quarantined),
         f"{wording.count(quarantined)} of them broken"),
    ]  # fmt: skip


def _personal(curation: Curation) -> str:
    count = sum(one.personal.get("items", 0) for one in curation.sources.values())
    if not count:
        return ""
    return (
        f"{wording.count(count)} items tell something of a person, which this page masks. "
        "curation.personal says whether they are kept, masked or left out."
    )


def _source_line(
    name: str, counts: SourceCounts, contents: Contents, free: Mapping[str, EchoScore]
) -> SourceLine:
    count = sum(counts.kept.values())
    dropped, broken = sum(counts.dropped.values()), sum(counts.quarantined.values())
    whole = max(counts.items, 1)
    bars = [("good", count), ("", dropped), ("bad", broken)]
    return SourceLine(
        name=name,
        rows=wording.count(counts.rows),
        items=wording.count(counts.items),
        survivors=wording.count(count),
        left_out=wording.count(dropped + broken),
        bars=[(kind, round(100 * number / whole, 2)) for kind, number in bars if number],
        decisions=_listed(counts.decisions),
        solve_rates=_listed(counts.solve_rates),
        personal=_listed(counts.personal),
        free=", ".join(
            f"{verifier.partition('@')[0]} {wording.percent(one.score)} ({one.text})"
            for verifier, one in free.items()
        ),
        reasons=list(_reason_lines(name, contents)),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {wording.count(number)}" for name, number in counts.items())


def _reason_lines(source: str, contents: Contents) -> Iterator[ReasonLine]:
    lines = [
        (count, reason, stage, outcome)
        for (name, stage, outcome), reasons in contents.reasons.items()
        if name == source
        for reason, count in reasons.items()
    ]
    for count, reason, stage, outcome in sorted(lines, key=lambda line: (-line[0], line[1])):
        yield ReasonLine(
            label=reason.replace("_", " "),
            stage=f"{outcome} by {stage}",
            count=wording.count(count),
            kind="no" if outcome == "quarantined" else "plain",
            examples=contents.refused[source, reason],
        )


def _clusters(contents: Contents) -> Iterator[ClusterLine]:
    for key, count in contents.clusters.most_common(MAX_CLUSTERS):
        text = contents.texts.get(key, "")
        yield ClusterLine(key, wording.count(count), text, contents.copies[key])


def _clusters_note(contents: Contents) -> str:
    copies, originals = contents.clusters.total(), len(contents.clusters)
    return (
        f"{wording.count(copies)} items were left out as copies of {wording.count(originals)} "
        f"others; the {min(originals, MAX_CLUSTERS)} largest clusters:"
    )


def _leak_table(leaks: Mapping[tuple[str, str], int]) -> list[tuple[str, list[str]]]:
    suites = sorted({suite for _, suite in leaks})
    return [
        (source, [wording.count(leaks[source, suite]) if (source, suite) in leaks else ""
                  for suite in suites])
        for source in sorted({source for source, _ in leaks})
    ]  # fmt: skip


def _charts(contents: Contents) -> Iterator[Chart]:
    for name, title, lengths in (
        ("prompts", "Prompts", contents.prompts),
        ("responses", "Responses to imitate", contents.responses),
    ):
        if lengths:
            cumulative = np.cumsum([lengths[length] for length in sorted(lengths)])
            middle = sorted(lengths)[int(np.searchsorted(cumulative, cumulative[-1] / 2))]
            svg = figures.lengths_figure(lengths, name)
            summary = f"median {wording.count(middle)}"
            yield Chart(title, "characters, on a logarithmic axis", summary, svg)
    if contents.levels:
        svg = figures.levels_figure(contents.levels, "levels")
        yield Chart(
            "Difficulty",
            "level that the source gives; grading measures the model's own",
            f"{wording.count(contents.levels.total())} problems",
            svg,
        )


def _families(contents: Contents, axis: int) -> list[FamilyLine]:
    """Count problems, demonstrations and held-out problems by domain (0) or language (1)."""
    tables: list[Counter[str]] = []
    for name in ("problems", "demonstrations", "held_out"):
        counts: Counter[str] = Counter()
        for family, count in contents.families[name].items():
            counts[family[axis]] += count
        tables.append(counts)
    whole = max(tables[0].total(), 1)
    names = sorted({name for table in tables for name in table}, key=lambda n: (-tables[0][n], n))
    return [
        FamilyLine(
            name.replace("_", " "),
            [wording.count(table[name]) for table in tables],
            wording.percent(tables[0][name] / whole),
            round(100 * tables[0][name] / whole, 2),
        )
        for name in names
    ]


_NOT_COUNTED = "not counted"


def _thinking(
    counted: Mapping[str, Mapping[str, ThinkingCounts]],
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (source, domain or language, cells of a line) in the order of the page's columns."""
    for source, groups in counted.items():
        for group, counts in groups.items():
            shares = [
                _NOT_COUNTED
                if some is None
                else wording.count(some)
                + (f" ({wording.percent(some / counts.demonstrations)})" if some else "")
                for some in (counts.confirmed, counts.empty)
            ]
            words = [
                _NOT_COUNTED if number is None else f"{number:,g}"
                for number in (counts.median_words, counts.long_words)
            ]
            yield (
                source,
                group.replace("_", " "),
                [wording.count(counts.demonstrations), *shares, *words],
            )


def _subjects(subjects: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (subject, problems, share) of the most frequent ones, and of all others together."""
    most = subjects.most_common(MAX_SUBJECTS)
    rest = subjects.total() - sum(count for _, count in most)
    if rest:
        most.append((f"{wording.count(len(subjects) - MAX_SUBJECTS)} others", rest))
    for name, count in most:
        yield name, wording.count(count), wording.percent(count / subjects.total())


def _classes(classes: Counter[str]) -> Counter[str]:
    """Write the names of classes behind their numbers."""
    names = {
        codes: "; ".join(CLASSES.get(code, "") for code in codes.split(", ")) for codes in classes
    }
    return Counter({f"{codes} {names[codes]}".rstrip(): count for codes, count in classes.items()})


def _models(pass_rates: Mapping[str, Counter[float]]) -> Iterator[tuple[str, list[str]]]:
    """Yield (model, [problems, mean pass rate, share of each band]), the best model first."""
    means = {
        model: sum(rate * count for rate, count in rates.items()) / rates.total()
        for model, rates in pass_rates.items()
    }
    for model in sorted(means, key=lambda name: (-means[name], name)):
        total, bands = pass_rates[model].total(), Counter[Band]()
        for rate, count in pass_rates[model].items():
            bands[band_of(rate)] += count
        shares = [wording.percent(bands[band] / total) for band in BANDS]
        yield model, [wording.count(total), wording.percent(means[model]), *shares]


def _trained(contents: Contents, family: tuple[str, str]) -> int:
    return contents.families["problems"][family] + contents.families["demonstrations"][family]
