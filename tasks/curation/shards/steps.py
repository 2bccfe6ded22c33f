"""The filters that look at more than one row, over shards: each shard is read once per filter.

Refusals go to files at once, so that the memory of a filter does not depend on how many there are.
"""

# pyright: basic
# pyarrow ships no types.

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_schemas.rows import Outcome, Problem, QuarantinedItem
from tasks.curation import dedup
from tasks.curation.cleaning import annotation, personal, quality, verification, withdrawal
from tasks.curation.contamination import (
    REASON,
    STAGE,
    CommonRuns,
    Hits,
    Suites,
    find_overlap,
)
from tasks.curation.harm import screening
from tasks.curation.harm.protocol import Guard
from tasks.curation.items import Item, Partition
from tasks.curation.meaning.neighbours import Neighbours
from tasks.curation.overlap.fingerprints import Fingerprinter, Hashes, Key
from tasks.curation.overlap.nearness import by_wording
from tasks.curation.shards.columns import refusals, to_items
from tasks.curation.shards.mapping import collector_paused, write_arrow
from tasks.curation.shards.opened import Shards
from tasks.curation.split import REUSED, Draw
from tasks.curation.split import STAGE as SPLIT
from tasks.platform.progress import progress
from tasks.store.files import write_bytes

MAPPED = ("read", withdrawal.STAGE, annotation.STAGE, personal.STAGE, quality.STAGE)
"""Stages of the refusals that lie in the shards, in order."""
WRONG, VERDICTS = "wrong.arrow", "verdicts"
"""In the folder of a shard; the second is written last."""
_UNVERIFIED, _WRONG, _RIGHT = range(3)


class RefusalTables:
    """Files of refusals, in the order of the filters."""

    def __init__(self, shards: Shards, work: Path) -> None:
        self._shards = shards
        self._work = work
        self._files: list[Path] = []

    def add(self, rows: Sequence[QuarantinedItem]) -> None:
        """Write refusals after those that are there."""
        if rows:
            path = self._work / f"refused-{len(self._files):06d}.arrow"
            write_arrow(path, refusals(rows))
            self.append(path)

    def append(self, path: Path) -> None:
        """Add a file of refusals after those that are there."""
        self._files.append(path)

    def tables(self) -> Iterator[pa.Table]:
        """Yield all refusals."""
        for stage in MAPPED:
            for shard in range(len(self._shards)):
                table = self._shards.refused(shard)
                mine = [one == stage for one in table["stage"].to_pylist()]
                yield table.filter(pa.array(mine, pa.bool_()))
        for path in self._files:
            with pa.memory_map(str(path)) as source:
                yield pa.ipc.open_file(source).read_all()


def verify(shards: Shards, refused: RefusalTables, score: verification.Score) -> None:
    """Quarantine the demonstrations whose response is wrong; note which could be verified.

    A shard that was scored by an earlier attempt is not scored again.
    """
    for shard in range(len(shards)):
        folder, living = shards.folder(shard), shards.living(shard)
        if not (folder / VERDICTS).exists():
            with collector_paused():
                verdicts, wrong = _verify(shards.batch(shard), living, score)
            write_arrow(folder / WRONG, refusals(wrong))
            write_bytes(folder / VERDICTS, verdicts.tobytes())
        refused.append(folder / WRONG)
        verdicts = np.fromfile(folder / VERDICTS, np.uint8)
        begin, end = shards.starts[shard], shards.starts[shard + 1]
        shards.alive[begin:end] &= verdicts != _WRONG
        shards.is_verified[begin:end] = verdicts == _RIGHT


def _verify(
    batch: pa.RecordBatch, living: NDArray[np.int64], score: verification.Score
) -> tuple[NDArray[np.uint8], list[QuarantinedItem]]:
    places = living[batch.column("answers").is_valid().to_numpy(zero_copy_only=False)[living]]
    items = to_items(pa.Table.from_batches([batch]).take(pa.array(places)))
    survivors, wrong = verification.verify(items, score)
    verdicts = np.full(len(batch), _UNVERIFIED, np.uint8)
    verdicts[places] = _WRONG
    rest = iter(survivors)
    one = next(rest, None)
    for place, item in zip(places, items, strict=True):
        if one is not None and one.record is item.record:
            verdicts[place] = _UNVERIFIED if one.answers is None else _RIGHT
            one = next(rest, None)
    return verdicts, wrong


@collector_paused()
def deduplicate(shards: Shards, refused: RefusalTables, threshold: float) -> None:
    """Drop contradictions, duplicates and near duplicates; quarantine reused ids."""
    result = _Refusals(shards.scratch((len(shards.alive), 4)))
    for one in dedup.find_duplicates(shards, shards.alive, threshold):
        result.put(one)
    for shard in range(len(shards)):
        some = list(result.rows(shards.starts[shard], shards.starts[shard + 1]))
        ids = dedup.ids_of(shards, some)
        left_out = [(one.row, one.outcome, one.reason, one.detail(ids)) for one in some]
        refused.add(shards.refuse(dedup.STAGE, left_out))


def screen_harm(shards: Shards, refused: RefusalTables, guard: Guard) -> None:
    """Drop what a guard calls harmful; quarantine what it cannot rate.

    A shard that was rated as a whole by an earlier attempt is not rated again.
    """
    _sieve(shards, refused, "harm", partial(screening.screen, guard=guard))


def drop_same_meaning(shards: Shards, refused: RefusalTables, neighbours: Neighbours) -> None:
    """Drop what means the same as a benchmark's question, as an encoder sees it.

    A shard that was compared by an earlier attempt is not encoded again.
    """
    _sieve(shards, refused, "meaning", neighbours.sieve)


def _sieve(
    shards: Shards, refused: RefusalTables, name: str, sieve: Callable[[list[Item]], Partition]
) -> None:
    """Apply a model's filter shard by shard; what it did of whole shards is kept."""
    for shard in progress(range(len(shards)), f"{name}: shards"):
        folder, living = shards.folder(shard), shards.living(shard)
        left_out, stays = folder / f"{name}.arrow", folder / f"{name}.npy"
        complete = folder / f"{name}-complete"
        if not complete.exists():
            items = to_items(pa.Table.from_batches([shards.batch(shard)]).take(pa.array(living)))
            survivors, omissions = sieve(items)
            safe = {id(item) for item in survivors}
            np.save(stays, [id(item) in safe for item in items])
            write_arrow(left_out, refusals(omissions))
            if all(one.reason != screening.UNRATED for one in omissions):
                write_bytes(complete, b"")
        refused.append(left_out)
        shards.alive[shards.starts[shard] + living] = np.load(stays)


@collector_paused()
def drop_overlap(
    shards: Shards,
    refused: RefusalTables,
    held_out: Sequence[Item],
    work: Path,
    *,
    any_numbers: bool = False,
) -> None:
    """Drop what overlaps with a held-out problem; read every shard twice."""
    suites, common = Suites(held_out, any_numbers=any_numbers), CommonRuns()
    for shard in range(len(shards)):
        batch = shards.compared(shard, shards.living(shard))
        hits = suites.hits(batch)
        common.add(batch, hits)
        np.save(work / f"hits-{shard:06d}.npy", np.stack([hits.items, hits.runs]))
    phrases = suites.phrases(common.frequent_runs())
    for shard in range(len(shards)):
        living = shards.living(shard)
        hits = Hits(*np.load(work / f"hits-{shard:06d}.npy"))
        rows = [
            (int(shards.starts[shard] + living[place]), detail)
            for place, detail in find_overlap(suites, shards.compared(shard, living), hits, phrases)
        ]
        _drop(shards, refused, rows)


@collector_paused()
def drop_reworded(shards: Shards, refused: RefusalTables, benchmarks: Sequence[Item]) -> None:
    """Drop what has nearly the words of a benchmark's question."""
    nearness = by_wording(benchmarks, Fingerprinter().of(benchmarks).words)
    for shard in range(len(shards)):
        living = shards.living(shard)
        details = nearness.leaks(shards.compared(shard, living).words)
        rows = [
            (int(shards.starts[shard] + row), detail)
            for row, detail in zip(living, details, strict=True)
            if detail
        ]
        _drop(shards, refused, rows)


def drop_same_rows(shards: Shards, refused: RefusalTables, held_out: Sequence[Item]) -> None:
    """Drop what was read from the raw row of a held-out problem, as by another adapter.

    A row that names an environment is no problem: its tasks are, and are compared by theirs.
    """
    ids = {
        item.record.source_row: item.record.id
        for item in reversed(held_out)
        if not (isinstance(item.record, Problem) and item.record.is_outside)
    }
    for shard in range(len(shards)):
        living = shards.living(shard)
        raw = shards.batch(shard).column("source_row").take(pa.array(living)).to_pylist()
        rows = [
            (int(shards.starts[shard] + row), f"its raw row is that of held-out {ids[key]}")
            for row, key in zip(living, raw, strict=True)
            if key in ids
        ]
        _drop(shards, refused, rows)


def _drop(shards: Shards, refused: RefusalTables, rows: Sequence[tuple[int, str]]) -> None:
    """Drop rows that overlap with what is held out, each with its detail."""
    left_out = [(row, Outcome.DROPPED, REASON, detail) for row, detail in rows]
    refused.add(shards.refuse(STAGE, left_out))
    shards.alive[[row for row, _ in rows]] = False


def drop_reused_ids(shards: Shards, refused: RefusalTables, held_out: Sequence[Item]) -> None:
    """Quarantine the problems that have the id of a held-out problem."""
    name_keys = Fingerprinter().of(held_out).keys[:, Key.NAME]
    is_taken = shards.is_problem & np.isin(shards.keys[:, Key.NAME, 0], name_keys[:, 0])
    rows = np.flatnonzero(is_taken & shards.alive)
    left_out = [(row, Outcome.QUARANTINED, "reused_id", REUSED) for row in rows.tolist()]
    refused.add(shards.refuse(SPLIT, left_out))
    shards.alive[rows] = False


@collector_paused()
def draw(shards: Shards, per_suite: int, seed: int) -> NDArray[np.int64]:
    """Take the problems to hold out from the set, and return their rows in order."""
    drawing = Draw(per_suite, seed)
    for shard in range(len(shards)):
        batch, living = shards.batch(shard), shards.living(shard)
        living = living[shards.is_problem[shards.starts[shard] + living]]
        columns = [batch.column(name) for name in ("domain", "source", "language", "id")]
        indices = pa.array(living)
        identities = zip(*(column.take(indices).to_pylist() for column in columns), strict=True)
        for place, (domain, source, language, key) in zip(living, identities, strict=True):
            drawing.add((domain, source, language), key, int(shards.starts[shard] + place))
    rows = np.array(sorted(drawing.rows()), dtype=np.int64)
    shards.alive[rows] = False
    return rows


class _Refusals:
    """Refusals by row."""

    def __init__(self, noted: Hashes) -> None:
        """Begin with none.

        Args:
            noted: zeros, [rows, 4].
        """
        self._reasons = noted[:, 0]
        self._twins = noted[:, 1:3].view(np.int64)
        self._similarities = noted[:, 3].view(np.float64)

    def put(self, one: dedup.DuplicateRow) -> None:
        """Note why a row is left out."""
        self._reasons[one.row] = dedup.REASONS.index(one.reason) + 1
        self._twins[one.row] = one.twin, one.rival
        self._similarities[one.row] = one.similarity

    def rows(self, begin: int, end: int) -> Iterator[dedup.DuplicateRow]:
        """Yield the refusals of some rows, in order."""
        for row in (np.flatnonzero(self._reasons[begin:end]) + begin).tolist():
            reason = dedup.REASONS[int(self._reasons[row]) - 1]
            twin, rival = self._twins[row].tolist()
            yield dedup.DuplicateRow(row, reason, twin, rival, float(self._similarities[row]))
