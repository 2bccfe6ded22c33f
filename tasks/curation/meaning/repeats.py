"""Rows to train on that mean the same as another one, as an encoder sees it.

Compared are rows of one kind and parent whose questions have the same numbers, in any order, and
the same answer: as with near duplicates, prompts of templated arithmetic differ in nothing else.
So rows with other numbers or answers are different rows, and say how near different rows come: a
cosine that 99 % of a source's rows in one language do not have with their nearest such row means
the same. A source with fewer than 100 of them takes the highest threshold of the others.

Of several such rows the first by (source order, id) is kept, and a row is left out if it is near
to one that is kept before it.

Letters: N rows, F features.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from data_schemas.rows import Demonstration
from tasks.curation.cleaning.wording import normalise, numbers
from tasks.curation.items import Item
from tasks.curation.meaning.neighbours import DIFFERENT, has_text
from tasks.curation.meaning.protocol import Vectors
from tasks.curation.overlap.fingerprints import Hashes
from tasks.curation.overlap.groups import Positions
from tasks.curation.overlap.nearness import FEWEST, ROWS
from tasks.errors import SettingsError

_LOG = logging.getLogger(__name__)
REASON = "same_meaning"
POOL = 4096
"""Rows of a source and language, evenly spaced, whose nearest other one is looked for."""
MOST_PAIRS = 20_000_000_000
"""Cosines that are computed; 200,000 rows without numbers and answers have as many, and vectors of
384 features take two cores some ten minutes."""

Group = tuple[str, str, str]
"""Kind, source and language."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A row, the row that it repeats, and their cosine."""

    row: int
    twin: int
    similarity: float


def text_of(item: Item) -> str:
    """Return what is encoded: the question, and the response of a demonstration."""
    return f"{item.content}\n{item.response}".strip()


def key_of(item: Item) -> bytes:
    """Return 16 bytes: equal for rows that are compared; zeros for a row that is not."""
    if not has_text(item):
        return bytes(16)
    parent, answer = "", item.answer_key
    if isinstance(item.record, Demonstration):
        parent, answer = item.record.parent, item.answers.answer if item.answers else ""
    result = " ".join(sorted(numbers(normalise(item.content))))
    key = f"{item.kind}\n{parent}\n{result}\n{answer}"
    return blake2b(key.encode(errors="surrogatepass"), digest_size=16).digest()


def check_feasible(sizes: Sequence[int]) -> None:
    """Refuse more comparisons than a machine makes in minutes.

    Args:
        sizes: of the sets in which every row is compared with every other.

    Raises:
        SettingsError: names the number of rows.
    """
    pairs = sum(size * (size - 1) // 2 for size in sizes)
    if pairs > MOST_PAIRS:
        raise SettingsError(
            f"curation.encoder: {max(sizes):,} rows have the same numbers and answer, or none, and "
            f"all sets of such rows have {pairs:,} pairs to compare by meaning; {MOST_PAIRS:,} are "
            "feasible. Set a limit of rows for the sources, or leave the encoder out."
        )


def limits_of(
    pools: Mapping[Group, Positions], keys: Hashes, vectors_NF: Vectors
) -> dict[Group, float]:
    """Return how near different rows come, by group; nothing if no group says it.

    Args:
        pools: some rows of each group.
        keys: of all rows, [N, 2].
        vectors_NF: of all rows.
    """
    limits: dict[Group, float] = {}
    for group, rows in pools.items():
        nearest = _nearest_of_others(vectors_NF[rows], keys[rows])
        if len(nearest) >= FEWEST:
            limits[group] = float(np.quantile(nearest, DIFFERENT, method="higher"))
    if not limits:
        _LOG.warning(
            "curation.encoder: no source has %d rows with different numbers or answers in one "
            "language, which would say how near different rows come; training rows are not "
            "compared with each other by meaning",
            FEWEST,
        )
        return {}
    others = max(limits.values())
    return {group: limits.get(group, others) for group in pools}


def _nearest_of_others(vectors_NF: Vectors, keys: Hashes) -> list[float]:
    """Return each row's highest cosine with a row of another key, of rows that have such."""
    nearest: list[float] = []
    for start in range(0, len(keys), ROWS):
        mine = keys[start : start + ROWS]
        similar = vectors_NF[start : start + ROWS] @ vectors_NF.T
        similar[(mine[:, None] == keys[None]).all(2)] = -np.inf
        highest = similar.max(1)
        nearest += highest[np.isfinite(highest)].tolist()
    return nearest


def repeats(
    rows: Positions, vectors_NF: Vectors, limits_N: NDArray[np.float32]
) -> Iterator[Repeat]:
    """Yield the rows that repeat one before them; in memory is one block of cosines.

    Args:
        rows: with one key, those to keep first.
        vectors_NF: of all rows, in memory or mapped from a file.
        limits_N: cosines that different rows may have; of two rows, the higher one holds.
    """
    survivors = rows[:0]
    for start in range(0, len(rows), ROWS):
        block = rows[start : start + ROWS]
        twins = np.full(len(block), -1)
        cosines = np.zeros(len(block), np.float32)
        for first in range(0, len(survivors), ROWS):
            some = survivors[first : first + ROWS]
            similar, is_near = _compare(vectors_NF, limits_N, block, some)
            new = np.flatnonzero((twins < 0) & is_near.any(1))
            nearest = is_near[new].argmax(1)
            twins[new], cosines[new] = some[nearest], similar[new, nearest]
        similar, is_near = _compare(vectors_NF, limits_N, block, block)
        is_near &= np.tri(len(block), k=-1, dtype=np.bool_)
        for place in np.flatnonzero(is_near.any(1) & (twins < 0)).tolist():
            earlier = np.flatnonzero(is_near[place] & (twins < 0))
            if len(earlier):
                twins[place], cosines[place] = block[earlier[0]], similar[place, earlier[0]]
        survivors = np.concatenate([survivors, block[twins < 0]])
        for place in np.flatnonzero(twins >= 0).tolist():
            yield Repeat(int(block[place]), int(twins[place]), float(cosines[place]))


def _compare(
    vectors_NF: Vectors, limits_N: NDArray[np.float32], left: Positions, right: Positions
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the cosines of rows, and which exceed what different rows may have."""
    similar = vectors_NF[left] @ vectors_NF[right].T
    return similar, similar > np.maximum(limits_N[left][:, None], limits_N[right])
