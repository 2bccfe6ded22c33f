"""Rows of all shards that mean the same as another one; see `meaning/repeats.py`."""

from collections import defaultdict

import numpy as np

from data_schemas.rows import Outcome
from tasks.curation import dedup
from tasks.curation.meaning.protocol import Encoder, Vectors
from tasks.curation.meaning.repeats import (
    POOL,
    REASON,
    Group,
    Repeat,
    check_feasible,
    key_of,
    limits_of,
    repeats,
    text_of,
)
from tasks.curation.overlap.fingerprints import Hashes
from tasks.curation.overlap.groups import Positions, equal
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import RefusalTables
from tasks.platform.progress import progress

_ENCODED = 1024
"""Texts that are in memory at once."""


def drop_repeats(shards: Shards, refused: RefusalTables, encoder: Encoder) -> None:
    """Drop what means the same as another row to train on.

    Encoded are the rows that have the same numbers and answer as another one, and up to POOL rows
    of each source and language. Their vectors lie in a file.

    Raises:
        SettingsError: there are too many rows to compare.
    """
    keys = shards.scratch((len(shards.alive), 2))
    groups = _groups(shards, keys)
    compared = shards.alive & keys.any(1)
    sizes = [len(rows) for rows in equal(keys, compared)]
    if not sizes:
        return
    check_feasible(sizes)
    pools = {group: _spread(rows) for group, rows in groups.items()}
    needed = np.zeros(len(shards.alive), np.bool_)
    for rows in (*pools.values(), *equal(keys, compared)):
        needed[rows] = True
    vectors = _encode(shards, np.flatnonzero(needed), encoder)
    limits = limits_of(pools, keys, vectors)
    if not limits:
        return
    of_row = np.full(len(shards.alive), np.inf, np.float32)
    for group, rows in groups.items():
        of_row[rows] = limits[group]
    results: list[Repeat] = []
    for rows in equal(keys, compared):
        ranks = dict(zip(rows.tolist(), shards.ranks(rows), strict=True))
        ranked = np.array(sorted(ranks, key=ranks.__getitem__))
        results += repeats(ranked, vectors, of_row)
    results.sort(key=lambda one: one.row)
    twins = shards.ranks(np.array([one.twin for one in results], np.int64))
    left_out = [
        (one.row, Outcome.DROPPED, REASON, f"of {twin}, cosine {one.similarity:.3f}")
        for one, (_, twin, _) in zip(results, twins, strict=True)
    ]
    refused.add(shards.refuse(dedup.STAGE, left_out))
    shards.alive[[one.row for one in results]] = False


def _groups(shards: Shards, keys: Hashes) -> dict[Group, Positions]:
    """Note the key of every living row, and return the rows that have one by group."""
    parts: defaultdict[Group, list[int]] = defaultdict(list)
    for shard in range(len(shards)):
        rows = shards.starts[shard] + shards.living(shard)
        for row, item in zip(rows.tolist(), shards.items(rows), strict=True):
            key = np.frombuffer(key_of(item), np.uint64)
            if key.any():
                keys[row] = key
                parts[item.kind, item.record.source, item.record.language].append(row)
    return {group: np.array(rows) for group, rows in sorted(parts.items())}


def _spread(rows: Positions) -> Positions:
    """Return up to POOL rows, evenly spaced."""
    if len(rows) <= POOL:
        return rows
    return rows[np.linspace(0, len(rows) - 1, POOL).astype(np.int64)]


def _encode(shards: Shards, rows: Positions, encoder: Encoder) -> Vectors:
    """Return the vectors of rows at their places among all rows, in a file."""
    vectors: Vectors | None = None
    for start in progress(range(0, len(rows), _ENCODED), "meaning: encoding"):
        some = rows[start : start + _ENCODED]
        result = encoder.encode([text_of(item) for item in shards.items(some)])
        if vectors is None:
            size = result.shape[1]
            room = shards.scratch((len(shards.alive), (size + 1) // 2))
            vectors = room.view(np.float32)[:, :size]
        vectors[some] = result
    if vectors is None:
        raise ValueError("no row to encode")
    return vectors
