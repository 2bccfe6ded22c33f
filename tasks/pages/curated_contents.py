"""What the page of a curated set shows, read from its tables in batches.

The tables may hold more rows than fit in memory: counters, histograms and few examples are kept.
"""

# pyright: basic
# pyarrow ships no types.

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from data_schemas.pass_rates import PASS_RATE
from data_schemas.rows import DEMONSTRATIONS, FACETS, HELD_OUT, PROBLEMS, QUARANTINE
from data_schemas.subjects import MSC, SUBJECT
from tasks.algorithms.personal_data import without_personal_data

MAX_EXAMPLES = 3
"""Most examples of one source and reason, and of one domain and language."""
MAX_CLUSTERS = 12
MAX_MEMBERS = 5
MAX_SUBJECTS = 20
MAX_PROMPT = 600
"""Characters of a prompt that are shown."""
_COPIES = ("duplicate", "near_duplicate", "same_meaning", "conflicting_answers")
_TWIN = re.compile(
    r"of (?P<of>.+?)(?:, (?:Jaccard|cosine) [\d.]+)?|"
    r"(?P<first>.+?) and .+ have the same prompt and .+"
)
_HELD_OUT = re.compile(r"held-out (?P<id>.+?)(?:: '|$)")
_BATCH = 4096

Table = str
"""problems, demonstrations or held_out."""


@dataclass(frozen=True, slots=True)
class ExcludedItem:
    """One item that was left out."""

    key: str
    detail: str
    row: str


@dataclass(frozen=True, slots=True)
class CuratedSample:
    """An item that is in the set, as the page shows it."""

    key: str
    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Counts and examples of one curated set."""

    reasons: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    """(source, stage, outcome) -> reason -> items."""
    refused: dict[tuple[str, str], list[ExcludedItem]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """(source, reason) -> examples."""
    clusters: Counter[str] = field(default_factory=Counter)
    """Kept item -> how many copies of it were left out."""
    copies: dict[str, list[ExcludedItem]] = field(default_factory=lambda: defaultdict(list))
    leaks: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(source, source of the held-out problem) -> items dropped as overlapping with it."""
    families: dict[Table, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """Table -> (domain, language) -> items."""
    samples: dict[tuple[str, str], list[CuratedSample]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """(domain, language) -> kept items."""
    prompts: Counter[int] = field(default_factory=Counter)
    """Characters of a prompt to train on -> prompts."""
    responses: Counter[int] = field(default_factory=Counter)
    subjects: Counter[str] = field(default_factory=Counter)
    """What sources say that problems are about, held out ones included."""
    classes: Counter[str] = field(default_factory=Counter)
    """MSC 2020 classes of the same problems, where they have one."""
    pass_rates: dict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))
    """Model -> pass rate -> problems, held out ones included."""
    levels: Counter[int] = field(default_factory=Counter)
    """The source's own difficulty of the problems that have one."""
    texts: dict[str, str] = field(default_factory=dict)
    """Prompts of the kept items that most copies were made of."""


def read_contents(curated: Path) -> Contents:
    """Read the tables of a curated set."""
    contents = Contents()
    for row in _rows(curated / QUARANTINE):
        _count_refusal(contents, row)
    largest = {key for key, _ in contents.clusters.most_common(MAX_CLUSTERS)}
    for name, path in (
        ("problems", PROBLEMS), ("demonstrations", DEMONSTRATIONS), ("held_out", HELD_OUT)
    ):  # fmt: skip
        for row in _rows(curated / path):
            _count_kept(contents, name, row, largest)
    if (curated / FACETS).exists():
        for row in _rows(curated / FACETS):
            _count_facet(contents, row["name"], row["value"])
    return contents


def _count_facet(contents: Contents, name: str, value: str) -> None:
    if name == SUBJECT:
        contents.subjects[value] += 1
    elif name == MSC:
        contents.classes[value] += 1
    elif name.startswith(PASS_RATE):
        contents.pass_rates[name.removeprefix(PASS_RATE)][float(value)] += 1


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=_BATCH):
            yield from batch.to_pylist()


def _count_refusal(contents: Contents, row: dict[str, Any]) -> None:
    source, reason = row["source"], row["reason"]
    place = (source, row["stage"], row["outcome"])
    contents.reasons.setdefault(place, Counter())[reason] += 1
    refusal = ExcludedItem(row["key"], without_personal_data(row["detail"]), row["source_row"])
    examples = contents.refused[source, reason]
    if len(examples) < MAX_EXAMPLES:
        examples.append(refusal)
    if reason in _COPIES and (twin := _TWIN.fullmatch(row["detail"])):
        original = twin["of"] or twin["first"]
        contents.clusters[original] += 1
        if len(contents.copies[original]) < MAX_MEMBERS:
            contents.copies[original].append(refusal)
    if reason == "contaminated":
        match = _HELD_OUT.search(row["detail"])
        suite = match["id"].partition("/")[0] if match else "a held-out problem"
        contents.leaks[source, suite] += 1


def _count_kept(contents: Contents, table: Table, row: dict[str, Any], largest: set[str]) -> None:
    family = (row["domain"], row["language"])
    contents.families[table][family] += 1
    text = "\n".join(turn["content"] for turn in json.loads(row["messages"]))
    if row["id"] in largest:
        contents.texts.setdefault(row["id"], without_personal_data(text[:MAX_PROMPT]))
    if table == "held_out":
        return
    if table == "problems":
        contents.prompts[len(text)] += 1
        if row["level"]:
            contents.levels[row["level"]] += 1
    else:
        contents.responses[len(row["response"])] += 1
    samples = contents.samples[family]
    if len(samples) < MAX_EXAMPLES:
        response = row.get("response") or f"Gold answer: {row['answer']}"
        texts = (without_personal_data(one[:MAX_PROMPT]) for one in (text, response))
        samples.append(CuratedSample(row["id"], *texts))
