"""What is done to every row by itself: read, adapt, withdraw, annotate, cleanse, fingerprint.

A shard is a run of rows of one file. Which rows it has depends on the files only, and what it
writes on its rows and the rules only: neither on the number of processes nor on their order.
"""

import gc
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import write_columns
from data_schemas.rows import Problem, QuarantinedItem
from data_schemas.settings import CurationSettings
from data_schemas.sources import RawFile, RowPlace
from tasks.curation.adapters.table import ADAPTERS, adapt
from tasks.curation.call_forms import in_form
from tasks.curation.cleaning import annotation
from tasks.curation.cleaning.personal import apply_policy
from tasks.curation.cleaning.quality import cleanse
from tasks.curation.cleaning.withdrawal import withdraw
from tasks.curation.ingest import GENERATED, locate
from tasks.curation.items import Item
from tasks.curation.overlap.fingerprints import Fingerprinter
from tasks.curation.rows import Unit, decode, first_rows, num_bytes, num_rows, read_units
from tasks.curation.shards.columns import refusals, to_table
from tasks.engines.chat import load_tokenizer
from tasks.formats.benchmark_file import as_asked
from tasks.formats.decisions import read_decisions
from tasks.formats.exclusions import read_list
from tasks.gym.table import VERIFIERS
from tasks.store.files import write_bytes

_LOG = logging.getLogger(__name__)
ROWS = 4096
"""Most rows of a shard."""
BYTES = 4 * 2**20
"""A shard ends with the row that reaches this size: long responses take more memory."""
ITEMS, KEYS, REFUSED, PLACES = "items.arrow", "keys.npy", "refused.arrow", "places.parquet"
DONE = "done.json"
"""Written last: its existence means that the shard is complete."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rows of all shards are held against."""

    settings: CurationSettings
    base_model: Path
    """Its tokenizer measures lengths."""
    withdrawn: Path | None
    """Exclusion list."""
    decisions: tuple[Path, ...] = ()
    """What people decided about gold answers."""


@dataclass(frozen=True, slots=True)
class ShardJob:
    """The rows of a shard, not yet parsed."""

    file: RawFile
    path: Path
    first: int
    """Number of its first row in the file."""
    units: tuple[Unit, ...]
    out: Path


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """What one shard has read and refused."""

    adapter: str
    rows: int
    read: dict[str, int]
    """Items by source; a row that cannot be read is one item."""
    decided: dict[str, str]
    """Problems that people decided about: '', or why the decision does not fit."""
    languages: dict[str, int]
    """Items by language."""
    refused: dict[str, dict[str, int]]
    """Items by language and reason, of the rules for single rows."""
    personal: dict[str, dict[str, int]]
    """Items that tell something of a person, by source and kind; `items` are all of them."""


def plan(raw: Path, files: Iterable[RawFile], out: Path) -> Iterator[ShardJob]:
    """Cut the listed files into shards, up to the row limit of each source.

    The files of a generated source are different tables, so the limit is that of each.

    Args:
        raw: folder that `ingest` wrote.
        files: files to read, in order.
        out: folder of the shards.
    """
    number = 0
    num_read: Counter[tuple[int, str]] = Counter()
    for file in files:
        path, first = locate(raw, file), 1
        key = file.source, file.uri if file.adapter in GENERATED else ""
        remaining = file.limit - num_read[key] if file.limit else None
        if remaining == 0:
            _LOG.warning(
                "limit %d of source %s is used up before %s, of which nothing is read: a limit "
                "counts the rows of all files of a source",
                *(file.limit, file.adapter, path.name),
            )
        if file.mapping is None and file.adapter not in ADAPTERS:
            yield ShardJob(file, path, first, (), out / f"{number:06d}")  # refused as a whole
            number += 1
            continue
        for units in _cut(_limited(read_units(path), remaining)):
            yield ShardJob(file, path, first, units, out / f"{number:06d}")
            count = sum(map(num_rows, units))
            first, number = first + count, number + 1
            num_read[key] += count


def prepare(rules: Rules) -> None:
    """Load what every shard needs, before processes are forked that share it."""
    pa.array([0])  # the first array of a process imports pandas, 40 MB
    _tokenizer(rules.base_model)
    _excluded(rules.withdrawn)
    _decisions(rules.decisions)


def map_shard(job: ShardJob, rules: Rules) -> None:
    """Write what the rows of a shard become, unless it is written already."""
    if not is_complete(job):
        with collector_paused():
            _map_shard(job, rules)


def is_complete(job: ShardJob) -> bool:
    """Return whether a shard is written."""
    return (job.out / DONE).exists()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Do not look for reference cycles: records have none, and every search visits all of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _map_shard(job: ShardJob, rules: Rules) -> None:
    job.out.mkdir(parents=True, exist_ok=True)
    file = job.file
    items: list[Item] = []
    refused: list[QuarantinedItem] = []
    places: dict[str, list[object]] = {name: [] for name in RowPlace.model_fields}
    raw = decode(job.path.stem, job.first, job.units)
    select = file.suite.select if file.suite else {}
    verifier = file.verifier or ""
    rows = adapt(file.adapter, file.source, job.path, raw, file.mapping, select, verifier)
    for number, row in enumerate(rows, start=job.first):
        first = row if isinstance(row, QuarantinedItem) else row[0].record
        places["source_row"].append(first.source_row)
        places["file"].append(file.sha256)
        places["number"].append(number)
        if isinstance(row, QuarantinedItem):
            refused.append(row)
        elif file.evaluation:
            items += [_of_benchmark(item, file) for item in row]
        else:
            items += row
    write_columns(job.out / PLACES, RowPlace, places)
    sources = Counter(item.record.source for item in items) + Counter(r.source for r in refused)
    decisions = _decisions(rules.decisions)
    decided = annotation.match(items, decisions)
    of_language = {item.record.id: item.record.language for item in items}
    languages = Counter(item.record.language for item in items)

    items, newly_refused = withdraw(items, _excluded(rules.withdrawn))
    refused += newly_refused
    items, newly_refused = annotation.apply(items, decisions)
    refused += newly_refused
    items, newly_refused, personal = apply_policy(items, rules.settings.personal)
    refused += newly_refused
    items = in_form(items, rules.base_model)
    items, newly_refused = cleanse(items, _tokenizer(rules.base_model), rules.settings, VERIFIERS)
    refused += newly_refused
    reasons: dict[str, Counter[str]] = {}
    for one in refused:
        if one.key in of_language:
            reasons.setdefault(of_language[one.key], Counter())[one.reason] += 1
    number = len(places["number"])
    by_language = {name: dict(counter) for name, counter in reasons.items()}
    counts = ShardCounts(
        file.adapter, number, dict(sources), decided, dict(languages), by_language, personal
    )
    fingerprints = _fingerprinter().of(items)
    np.save(job.out / KEYS, fingerprints.keys)
    write_arrow(job.out / ITEMS, to_table(items, fingerprints.words))
    write_arrow(job.out / REFUSED, refusals(refused))
    write_bytes(job.out / DONE, json.dumps(asdict(counts)).encode())


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write a table as one batch, so that any row of it can be read by itself."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def counts_of(shard: Path) -> ShardCounts:
    """Read how many rows a complete shard has."""
    return ShardCounts(**json.loads((shard / DONE).read_bytes()))


def _limited(units: Iterable[Unit], remaining: int | None) -> Iterator[Unit]:
    """Pass on the first rows; None = all."""
    for unit in units:
        if remaining is None:
            yield unit
            continue
        if remaining <= 0:
            return
        yield unit if num_rows(unit) <= remaining else first_rows(unit, remaining)
        remaining -= num_rows(unit)


def _cut(units: Iterable[Unit]) -> Iterator[tuple[Unit, ...]]:
    some: list[Unit] = []
    rows = size = 0
    for unit in units:
        some.append(unit)
        rows, size = rows + num_rows(unit), size + num_bytes(unit)
        if rows >= ROWS or size >= BYTES:
            yield tuple(some)
            some, rows, size = [], 0, 0
    if some:
        yield tuple(some)


def _of_benchmark(item: Item, file: RawFile) -> Item:
    """Mark an item as part of a benchmark, and ask its problem as the suite says."""
    if file.suite is None or not isinstance(item.record, Problem):
        return replace(item, evaluation=True)
    return replace(item, evaluation=True, record=as_asked(item.record, file.suite))


@lru_cache(maxsize=1)
def _tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(folder)


@lru_cache(maxsize=1)
def _fingerprinter() -> Fingerprinter:
    return Fingerprinter()


@lru_cache(maxsize=1)
def _excluded(path: Path | None) -> frozenset[str]:
    return frozenset[str]() if path is None else frozenset(read_list(path))


@lru_cache(maxsize=1)
def _decisions(paths: tuple[Path, ...]) -> annotation.Decisions:
    return read_decisions(paths)
