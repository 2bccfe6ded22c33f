"""Exact and near duplicates, among the problems and among the demonstrations.

Exact: equal prompts (and responses) once folded (`algorithms/folding.py`), with the
same answer. Near: MinHash LSH over 3-grams of words, and every candidate pair checked by its exact
Jaccard similarity. Prompts whose numbers or answers differ are never duplicates: prompts of
templated arithmetic differ in nothing else.

Of several duplicates the first by (source order, id) is kept, so the order of rows within
a source has no influence. The filter is idempotent.

Items are compared by their keys (`overlap/fingerprints.py`), of which a row has 112 bytes; its id
and its words are only looked at if a key says so. The rows may lie in memory or in files; what is
noted of each row lies where they do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from data_schemas.rows import Outcome, Problem
from tasks.curation.items import Item, Partition, refuse
from tasks.curation.overlap.fingerprints import (
    Fingerprinter,
    Hashes,
    Key,
    distinct_shingles,
    every_shingle,
    shingles,
    split,
)
from tasks.curation.overlap.groups import Positions, equal, positions
from tasks.curation.overlap.sketches import PERMUTATIONS, bands, rows_per_band

STAGE = "dedup"
NGRAM = 3
_REMEMBERED = 2_000
"""Texts whose shingles are kept while a cluster is compared; one of 8,000 words takes 64 kB."""
_RANKED = 8_192
"""Rows whose ranks are read at once, about: 2 MB; they lie in all shards."""
_READ = 256
"""Rows whose words are read at once, about."""

REASONS = ("conflicting_answers", "duplicate", "reused_id", "near_duplicate")

Mask = NDArray[np.bool_]
GroupT = TypeVar("GroupT", Positions, list[int])
Rank = tuple[int, str, str]
"""Source order, id, hash of the raw row."""


class Rows(Protocol):
    """Items to compare."""

    @property
    def keys(self) -> Hashes:
        """Return the keys: [rows, keys, 2]."""
        ...

    @property
    def is_problem(self) -> NDArray[np.bool_]:
        """Return True for a problem, False for a demonstration."""
        ...

    def ranks(self, rows: Positions) -> list[Rank]:
        """Return what decides which of several duplicates is kept: the smallest."""
        ...

    def words(self, rows: Positions) -> list[Hashes]:
        """Return the words of contents, and of the responses of demonstrations."""
        ...

    def scratch(self, shape: tuple[int, ...]) -> Hashes:
        """Return zeros that may take any room."""
        ...


@dataclass(frozen=True, slots=True)
class DuplicateRow:
    """Why a row is left out."""

    row: int
    reason: str
    twin: int
    """The row it repeats."""
    rival: int = -1
    """Row of conflicting answers: the row that has the same prompt as its twin."""
    similarity: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """Return whether somebody has to look at it."""
        return Outcome.QUARANTINED if self.reason == "reused_id" else Outcome.DROPPED

    def detail(self, ids: Mapping[int, str]) -> str:
        """Return the detail for people.

        Args:
            ids: of the rows that `named` names.
        """
        name = ids[self.twin]
        match self.reason:
            case "conflicting_answers":
                return f"{name} and {ids[self.rival]} have the same prompt and different answers"
            case "reused_id":
                return "another row has this id"
            case "duplicate":
                return f"of {name}"
            case _:
                return f"of {name}, Jaccard {self.similarity:.2f}"


def ids_of(rows: Rows, refusals: Iterable[DuplicateRow]) -> dict[int, str]:
    """Return the ids of all rows that refusals name."""
    others = {row for one in refusals for row in (one.twin, one.rival) if row >= 0}
    result = np.array(sorted(others), np.int64)
    return {row: key for row, (_, key, _) in zip(result.tolist(), rows.ranks(result), strict=True)}


def deduplicate(items: Sequence[Item], threshold: float) -> Partition:
    """Drop contradictions, duplicates and near duplicates; quarantine reused ids.

    Args:
        items: kept items are returned in this order.
        threshold: smallest Jaccard similarity of near duplicates; 1 = exact duplicates only.
    """
    rows = _ItemRows(items)
    duplicates = find_duplicates(rows, np.ones(len(items), np.bool_), threshold)
    refused = {one.row: one for one in duplicates}
    ids = ids_of(rows, refused.values())
    survivors = [item for row, item in enumerate(items) if row not in refused]
    return survivors, [
        refuse(items[row], STAGE, one.outcome, one.reason, one.detail(ids))
        for row, one in sorted(refused.items())
    ]


def find_duplicates(
    rows: Rows, alive: NDArray[np.bool_], threshold: float
) -> Iterator[DuplicateRow]:
    """Yield why rows are left out, in no particular order; each row at most once.

    Args:
        rows: items, also those that are no longer compared.
        alive: which are compared; those found are set to False.
        threshold: smallest Jaccard similarity of near duplicates; 1 = exact duplicates only.
    """
    for find in (_find_contradictions, _find_exact, _find_reused_ids):
        for refusal in find(rows, alive.copy()):
            alive[refusal.row] = False
            yield refusal
    if threshold < 1.0:
        for refusal in _find_near(rows, alive.copy(), threshold):
            alive[refusal.row] = False
            yield refusal


def _find_contradictions(rows: Rows, mask: Mask) -> Iterator[DuplicateRow]:
    """Refuse all items with a prompt for which two problems expect different answers."""
    prompts, answers = rows.keys[:, Key.PROMPT], rows.keys[:, Key.ANSWER]
    first: dict[bytes, tuple[int, int]] = {}
    for group in _ranked(rows, equal(prompts, mask & rows.is_problem)):
        expected: dict[bytes, int] = {}
        for row in group:
            expected.setdefault(answers[row].tobytes(), row)
        if len(expected) > 1:
            twin, rival, *_ = expected.values()
            first[prompts[twin].tobytes()] = (twin, rival)
    if not first:
        return
    prefixes = np.array([np.frombuffer(key, np.uint64)[0] for key in first])
    for some in positions(mask):
        for row in some[np.isin(prompts[some, 0], prefixes)]:
            if pair := first.get(prompts[row].tobytes()):
                yield DuplicateRow(int(row), "conflicting_answers", *pair)


def _find_exact(rows: Rows, mask: Mask) -> Iterator[DuplicateRow]:
    for twin, *others in _ranked(rows, equal(rows.keys[:, Key.EXACT], mask)):
        yield from (DuplicateRow(row, "duplicate", twin) for row in others)


def _find_reused_ids(rows: Rows, mask: Mask) -> Iterator[DuplicateRow]:
    for twin, *others in _ranked(rows, equal(rows.keys[:, Key.NAME], mask)):
        yield from (DuplicateRow(row, "reused_id", twin) for row in others)


def _find_near(rows: Rows, mask: Mask, threshold: float) -> Iterator[DuplicateRow]:
    """Compare each item with the items kept before it that have the same numbers and answer."""
    crowded = np.zeros(len(mask), np.bool_)
    for group in equal(rows.keys[:, Key.BUCKET], mask):
        crowded[group] = True
    members = rows.scratch((int(np.count_nonzero(crowded)),)).view(np.int64)
    pairs, begin = rows.scratch((len(members), 2)), 0
    for some in positions(crowded):
        members[begin : begin + len(some)] = some
        pairs[begin : begin + len(some), 1] = rows.keys[some, Key.BUCKET, 0]
        begin += len(some)
    sketches = _sketch(rows, members, threshold)
    clusters, everyone = _Clusters(rows.scratch((len(members), 2))), np.ones(len(members), np.bool_)
    for column in range(sketches.shape[1]):
        pairs[:, 0] = sketches[:, column]
        for group in equal(pairs, everyone):
            clusters.unite(group)
    ranked = _ranked(rows, (members[cluster] for cluster in clusters.groups()))
    for some in _batches(ranked, _READ):
        read = _shingles_of(rows, np.concatenate(some)[:_READ])
        for cluster in some:
            bands = sketches[np.searchsorted(members, cluster)]
            yield from _compare(cluster, bands, read, threshold)


def _compare(
    ranked: Sequence[int], sketches: Hashes, read: Callable[[int], Hashes], threshold: float
) -> Iterator[DuplicateRow]:
    """Keep the first of a cluster of candidates, and what is not similar enough to a kept one."""
    places_by_band: dict[tuple[int, int], list[int]] = {}
    for place, row in enumerate(ranked):
        mine = list(enumerate(sketches[place].tolist()))
        candidates = {twin for band in mine for twin in places_by_band.get(band, ())}
        for twin in sorted(candidates):
            similarity = jaccard(read(row), read(ranked[twin]))
            if similarity >= threshold:
                yield DuplicateRow(row, "near_duplicate", ranked[twin], similarity=similarity)
                break
        else:
            for band in mine:
                places_by_band.setdefault(band, []).append(place)


def _shingles_of(rows: Rows, first: Positions) -> Callable[[int], Hashes]:
    """Return what reads the shingles of a row; those of the first rows are read at once."""
    hashes, ends = distinct_shingles(rows.words(first), NGRAM)
    ahead = dict(zip(first.tolist(), split(hashes, ends), strict=True))

    @lru_cache(maxsize=_REMEMBERED)
    def read(row: int) -> Hashes:
        result = ahead.pop(row, None)
        return shingles(rows.words(np.array([row]))[0], NGRAM) if result is None else result

    return read


def jaccard(left: Hashes, right: Hashes) -> float:
    """Return the share of shingles two texts have in common; both are distinct and not empty."""
    both = len(np.intersect1d(left, right, assume_unique=True))
    return both / (len(left) + len(right) - both)


def _sketch(rows: Rows, members: Positions, threshold: float) -> Hashes:
    sketches = rows.scratch((len(members), PERMUTATIONS // rows_per_band(threshold)))
    for begin in range(0, len(members), _READ):
        some = rows.words(members[begin : begin + _READ])
        sketches[begin : begin + len(some)] = bands(*every_shingle(some, NGRAM), threshold)
    return sketches


def _ranked(rows: Rows, groups: Iterable[Positions]) -> Iterator[list[int]]:
    """Yield the rows of each group by their ranks."""
    for some in _batches(groups, _RANKED):
        result = np.concatenate(some)
        ranks = dict(zip(result.tolist(), rows.ranks(result), strict=True))
        for group in some:
            yield sorted(group.tolist(), key=ranks.__getitem__)


def _batches(groups: Iterable[GroupT], at_least: int) -> Iterator[list[GroupT]]:
    """Yield several groups at once, which have so many rows together, and the rest."""
    some: list[GroupT] = []
    num_rows = 0
    for group in groups:
        some.append(group)
        num_rows += len(group)
        if num_rows >= at_least:
            yield some
            some, num_rows = [], 0
    if some:
        yield some


class _Clusters:
    """Disjoint sets of numbers below a limit (Tarjan 1975, with halving of paths)."""

    def __init__(self, parents: Hashes) -> None:
        """Begin with one set per number.

        Args:
            parents: zeros; [numbers, 2], so that sets are found as equal keys.
        """
        parents[:, 0] = np.arange(len(parents))
        self._keys, self._parent = parents, parents[:, 0]

    def unite(self, members: Positions) -> None:
        """Make one set of the sets of all members."""
        roots = [self._root(int(member)) for member in members]
        smallest = min(roots)
        for root in roots:
            self._parent[root] = smallest

    def groups(self) -> Iterator[Positions]:
        """Yield the sets of at least two numbers."""
        for number in range(len(self._parent)):
            self._parent[number] = self._root(number)
        yield from equal(self._keys, np.ones(len(self._keys), np.bool_))

    def _root(self, number: int) -> int:
        parent = self._parent
        while int(parent[number]) != number:
            parent[number] = parent[int(parent[number])]
            number = int(parent[number])
        return number


class _ItemRows:
    """Items in memory."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._fingerprinter = Fingerprinter()
        self._found = self._fingerprinter.of(items)
        self._is_problem = np.array([isinstance(i.record, Problem) for i in items], np.bool_)

    @property
    def keys(self) -> Hashes:
        return self._found.keys

    @property
    def is_problem(self) -> NDArray[np.bool_]:
        return self._is_problem

    def ranks(self, rows: Positions) -> list[Rank]:
        items = [self._items[row] for row in rows]
        return [(item.source, item.record.id, item.record.source_row) for item in items]

    def words(self, rows: Positions) -> list[Hashes]:
        responses = [self._fingerprinter.words(self._items[row].response) for row in rows]
        contents = [self._found.words[row] for row in rows]
        return [np.concatenate(both) for both in zip(contents, responses, strict=True)]

    def scratch(self, shape: tuple[int, ...]) -> Hashes:
        return np.zeros(shape, np.uint64)
