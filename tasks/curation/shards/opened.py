"""All shards together: their items are numbered from 0, and any of them can be looked at."""

# pyright: basic
# pyarrow ships no types.

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_schemas.rows import ItemKind, Outcome, QuarantinedItem
from tasks.curation.contamination import EncodedItems, is_spaceless
from tasks.curation.dedup import Rank
from tasks.curation.items import DETAIL_CHARACTERS, Item
from tasks.curation.overlap.fingerprints import Fingerprinter, Hashes, Key
from tasks.curation.shards.columns import ITEMS as COLUMNS
from tasks.curation.shards.columns import to_items
from tasks.curation.shards.mapping import ITEMS, KEYS, REFUSED, write_arrow

_OPEN = 256
"""Shards whose files stay mapped."""
SCRATCH = "scratch.npy"
LeftOut = tuple[int, Outcome, str, str]
"""Row, outcome, reason, detail."""
REPLACED = "items-replaced.arrow"
"""In the folder of a shard: its items with other answers, instead of the first ones."""


class Shards:
    """Items of all shards, on disk.

    In memory are a few bytes per item: what it is, and whether it is still in the set.
    """

    def __init__(self, folders: Sequence[Path], work: Path) -> None:
        """Open the shards.

        Args:
            folders: of the shards, in order.
            work: receives what is noted of each item.
        """
        self._folders = list(folders)
        parts = [np.load(folder / KEYS, mmap_mode="r") for folder in folders]
        self.starts = np.cumsum([0, *map(len, parts)])
        self._work = work
        shape = (int(self.starts[-1]), len(Key), 2)
        self.keys: Hashes = self.scratch(shape)
        for start, part in zip(self.starts, parts, strict=False):
            self.keys[start : start + len(part)] = part
        self.is_problem = self._flags("is_problem")
        self.is_evaluation = self._flags("evaluation")
        self.alive = np.ones(shape[0], np.bool_)
        self.is_verified = np.zeros(shape[0], np.bool_)
        """Demonstrations whose response was scored."""
        self._fingerprinter = Fingerprinter()
        self._batch = lru_cache(_OPEN)(self._open)

    def folder(self, shard: int) -> Path:
        """Return the folder of a shard."""
        return self._folders[shard]

    def __len__(self) -> int:
        return len(self._folders)

    def batch(self, shard: int) -> pa.RecordBatch:
        """Return the items of a shard, mapped from its file."""
        return self._batch(shard)

    def has_other_answers(self, shard: int) -> bool:
        """Return whether answers of a shard were replaced, by this attempt or an earlier one."""
        return (self._folders[shard] / REPLACED).exists()

    def replace_answers(self, shard: int, answers: Mapping[int, str]) -> None:
        """Give items of a shard other answers; the rows of the shard are the keys.

        Fingerprints stay those of the first answers. Later attempts open the shard as it is then.
        """
        batch = self.batch(shard)
        place = batch.schema.get_field_index("answer")
        column = batch.column(place).to_pylist()
        for row, answer in answers.items():
            column[row] = answer
        columns = [*batch.columns]
        columns[place] = pa.array(column, pa.string())
        replaced = self._folders[shard] / REPLACED
        unfinished = replaced.with_suffix(".part")
        write_arrow(unfinished, pa.Table.from_arrays(columns, schema=batch.schema))
        unfinished.replace(replaced)
        self._batch.cache_clear()

    def refused(self, shard: int) -> pa.Table:
        """Return what was refused when the rows of a shard were read."""
        with pa.memory_map(str(self._folders[shard] / REFUSED)) as source:
            return pa.ipc.open_file(source).read_all()

    def living(self, shard: int) -> NDArray[np.int64]:
        """Return which items of a shard are still in the set, as rows of the shard."""
        return np.flatnonzero(self.alive[self.starts[shard] : self.starts[shard + 1]])

    def items(self, rows: Sequence[int] | NDArray[np.int64]) -> list[Item]:
        """Read items, in order."""
        return to_items(self._take(rows, COLUMNS.names))

    def ranks(self, rows: NDArray[np.int64]) -> list[Rank]:
        """Return source order, id and raw row of items."""
        table = self._take(rows, ["order", "id", "source_row"])
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def refuse(self, stage: str, omissions: Sequence[LeftOut]) -> list[QuarantinedItem]:
        """Record why items are left out."""
        rows = np.array([row for row, *_ in omissions], np.int64)
        table = self._take(rows, ["source", "id", "source_row"])
        identities = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return [
            QuarantinedItem(
                stage=stage,
                outcome=outcome,
                kind=ItemKind.PROBLEM if self.is_problem[row] else ItemKind.DEMONSTRATION,
                source=source,
                key=key,
                reason=reason,
                detail=detail[:DETAIL_CHARACTERS],
                source_row=source_row,
            )
            for (row, outcome, reason, detail), (source, key, source_row) in zip(
                omissions, identities, strict=True
            )
        ]

    def words(self, rows: NDArray[np.int64]) -> list[Hashes]:
        """Return the words of contents, and of the responses of demonstrations."""
        results: list[Hashes] = [np.empty(0, np.uint64)] * len(rows)
        for shard, places, members in self._by_shard(rows):
            batch = self.batch(shard)
            responses = batch.column("response").take(pa.array(members)).to_pylist()
            contents = _lists(batch, members)
            for place, content, response in zip(places, contents, responses, strict=True):
                response_words = [] if response is None else [self._fingerprinter.words(response)]
                results[place] = np.concatenate([content, *response_words])
        return results

    def compared(self, shard: int, rows: NDArray[np.int64]) -> EncodedItems:
        """Return items of a shard as they are compared with the suites."""
        batch = self.batch(shard)
        languages = batch.column("language").take(pa.array(rows)).to_pylist()
        keys = self.keys[self.starts[shard] + rows]
        return EncodedItems(keys, _lists(batch, rows), is_spaceless(languages))

    def scratch(self, shape: tuple[int, ...]) -> Hashes:
        """Return zeros in a file that goes when they do."""
        if not all(shape):
            return np.zeros(shape, np.uint64)
        path = self._work / SCRATCH
        zeros = np.lib.format.open_memmap(path, "w+", dtype=np.uint64, shape=shape)
        path.unlink()
        return np.asarray(zeros)  # scalars of a memmap are slow

    def _flags(self, name: str) -> NDArray[np.bool_]:
        parts = [
            self._open(shard).column(name).to_numpy(zero_copy_only=False)
            for shard in range(len(self))
        ]
        return np.concatenate([np.empty(0, np.bool_), *parts]).astype(np.bool_)

    def _take(self, rows: Sequence[int] | NDArray[np.int64], names: Sequence[str]) -> pa.Table:
        """Return columns of items, in order."""
        parts = [COLUMNS.empty_table().select(names)]
        order = [np.empty(0, np.int64)]
        for shard, places, members in self._by_shard(np.asarray(rows, dtype=np.int64)):
            table = pa.Table.from_batches([self.batch(shard)]).select(names)
            parts.append(table.take(pa.array(members)))
            order.append(places)
        table, places = pa.concat_tables(parts), np.concatenate(order)
        if (places[1:] > places[:-1]).all():
            return table
        return table.take(pa.array(np.argsort(places)))

    def _by_shard(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield each shard that has some of the rows, their places, and them as its rows."""
        of = np.searchsorted(self.starts, rows, "right") - 1
        order = np.argsort(of, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            if len(places):
                shard = int(of[places[0]])
                yield shard, places, rows[places] - self.starts[shard]

    def _open(self, shard: int) -> pa.RecordBatch:
        folder = self._folders[shard]
        name = REPLACED if self.has_other_answers(shard) else ITEMS
        source = pa.memory_map(str(folder / name))
        reader = pa.ipc.open_file(source)
        if not reader.num_record_batches:
            return pa.RecordBatch.from_pylist([], schema=reader.schema)
        return reader.get_batch(0)


def _lists(batch: pa.RecordBatch, places: Sequence[int] | NDArray[np.int64]) -> list[Hashes]:
    column = batch.column("words")
    values = column.values.to_numpy()
    ends = column.offsets.to_numpy()
    return [values[ends[place] : ends[place + 1]] for place in places]
