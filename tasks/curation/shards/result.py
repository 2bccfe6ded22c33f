"""Write the curated set: read every shard once more, and copy the columns of what is left."""

# pyright: basic
# pyarrow ships no types.

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from data_schemas.arrow import arrow_schema, write_stream, write_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    FACETS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    ROWS,
    Demonstration,
    Facet,
    Outcome,
    Problem,
    QuarantinedItem,
)
from data_schemas.sources import RowPlace
from tasks.curation.cleaning.pass_rates import with_rates
from tasks.curation.cleaning.personal import ITEMS as PERSONAL_ITEMS
from tasks.curation.items import Item
from tasks.curation.shards.mapping import PLACES, collector_paused, counts_of
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.selection import answered_of, problem_facets
from tasks.curation.shards.steps import RefusalTables
from tasks.curation.thinking import Thinking
from tasks.formats.solve_rates import Rates

Counts = dict[str, int]


class Account:
    """Counts of what became of the items, by source."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        """Raw rows by adapter."""
        self.read: Counter[str] = Counter()
        self.kept: dict[str, Counter[str]] = defaultdict(Counter)
        self.refused: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """Reasons by source and outcome, in the order of the filters."""
        self.reasons: dict[str, Counter[str]] = defaultdict(Counter)
        """By kind of what was refused."""
        self.details: dict[str, str] = {}
        """Details of the first refusal for each reason."""
        self.axes: dict[str, Counter[str]] = {"domain": Counter(), "language": Counter()}
        """Problems to train on by domain and by language."""
        self.languages: Counter[str] = Counter()
        """Items that were read."""
        self.kept_languages: Counter[str] = Counter()
        self.refused_languages: dict[str, Counter[str]] = defaultdict(Counter)
        """Reasons of the rules for single rows, by language."""
        self.personal: dict[str, Counter[str]] = defaultdict(Counter)
        """Items that tell something of a person, by source and kind."""
        self.verified = 0
        self.thinking = Thinking()

    def of(self, source: str) -> dict[str, int | Counts]:
        """Return the report of a source. A row that cannot be read is one item."""
        survivors = {
            name: self.kept[source][name] for name in ("problems", "demonstrations", "held_out")
        }
        dropped, quarantined = (
            self.refused[source, outcome] for outcome in (Outcome.DROPPED, Outcome.QUARANTINED)
        )
        refused = dropped.total() + quarantined.total()
        assert self.read[source] == sum(survivors.values()) + refused, source
        return {
            "rows": self.rows[source],
            "items": self.read[source],
            "kept": survivors,
            "dropped": dict(dropped),
            "quarantined": dict(quarantined),
        }

    def totals(self) -> Counts:
        """Return the counts of all sources together."""
        survivors = Counter[str]()
        for counts in self.kept.values():
            survivors += counts
        outcomes = Counter[str]()
        for (_, outcome), reasons in self.refused.items():
            outcomes[outcome] += reasons.total()
        return {
            "rows": self.rows.total(),
            "items": self.read.total(),
            "problems": survivors["problems"],
            "demonstrations": survivors["demonstrations"],
            "verified_demonstrations": self.verified,
            "held_out": survivors["held_out"],
            "personal": sum(kinds[PERSONAL_ITEMS] for kinds in self.personal.values()),
            "dropped": outcomes[Outcome.DROPPED],
            "quarantined": outcomes[Outcome.QUARANTINED],
        }


@collector_paused()
def write_result(
    shards: Shards,
    refused: RefusalTables,
    held_out: Sequence[Item],
    suites: Sequence[Item],
    rates: Rates,
    out: Path,
) -> Account:
    """Write all tables, and count what they hold.

    Args:
        shards: with what is still in the set.
        refused: everything else.
        held_out: the items of this run that are held out.
        suites: everything to evaluate with.
        rates: of models, which become facets.
        out: folder of the curated set.
    """
    account = Account()
    for shard in range(len(shards)):
        counts = counts_of(shards.folder(shard))
        account.rows[counts.adapter] += counts.rows
        account.read.update(counts.read)
        account.languages.update(counts.languages)
        for language, reasons in counts.refused.items():
            account.refused_languages[language].update(reasons)
        for source, kinds in counts.personal.items():
            account.personal[source].update(kinds)
    write_stream(out / ROWS, arrow_schema(RowPlace), _places(shards))
    write_stream(out / PROBLEMS, arrow_schema(Problem), _problems(shards, account))
    write_stream(
        out / DEMONSTRATIONS, arrow_schema(Demonstration), _demonstrations(shards, account)
    )
    write_table(out / HELD_OUT, Problem, [item.record for item in suites])
    write_stream(out / QUARANTINE, arrow_schema(QuarantinedItem), _refused(refused, account))
    facets = arrow_schema(Facet)
    if not write_stream(out / FACETS, facets, _facets(shards, suites, rates)):
        (out / FACETS).unlink()
    for item in held_out:
        account.kept[item.record.source]["held_out"] += 1
        account.kept_languages[item.record.language] += 1
    account.verified = int((shards.is_verified & shards.alive).sum())
    return account


def _places(shards: Shards) -> Iterator[pa.Table]:
    for shard in range(len(shards)):
        yield pq.read_table(shards.folder(shard) / PLACES)


def _problems(shards: Shards, account: Account) -> Iterator[pa.Table]:
    for _, table in _living(shards, problems=True):
        for axis, counts in account.axes.items():
            counts += _value_counts(table[axis])
        _count(table, "problems", account)
        yield table


def _demonstrations(shards: Shards, account: Account) -> Iterator[pa.Table]:
    for places, table in _living(shards, problems=False):
        _count(table, "demonstrations", account)
        names = ("source", "domain", "language", "response")
        columns = (table[name].to_pylist() for name in names)
        for *row, confirmed in zip(*columns, shards.is_verified[places].tolist(), strict=True):
            account.thinking.add(*row, confirmed=confirmed)
        yield table


def _living(shards: Shards, *, problems: bool) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
    """Yield the problems or the demonstrations that are left, with their places, by shard."""
    for shard in range(len(shards)):
        living = shards.living(shard)
        rows = living[shards.is_problem[shards.starts[shard] + living] == problems]
        table = pa.Table.from_batches([shards.batch(shard)]).take(pa.array(rows))
        yield shards.starts[shard] + rows, table


def _refused(refused: RefusalTables, account: Account) -> Iterator[pa.Table]:
    for table in refused.tables():
        names = ("source", "outcome", "kind", "reason", "detail")
        columns = [table[name].to_pylist() for name in names]
        for source, outcome, kind, reason, detail in zip(*columns, strict=True):
            account.details.setdefault(reason, detail)
            account.refused[source, outcome][reason] += 1
            account.reasons[kind][reason] += 1
        yield table


def _facets(shards: Shards, suites: Iterable[Item], rates: Rates) -> Iterator[pa.Table]:
    """Yield what sources and models say of the problems besides, if anything."""
    schema = arrow_schema(Facet)
    for _, table in _living(shards, problems=True):
        rows = table if rates else table.filter(table["facets"].is_valid())
        yield _facet_rows(
            [(key, facets) for (key, *_), facets in problem_facets(rows, rates)], schema
        )
    records = [(item.record, item.facets) for item in suites]
    yield _facet_rows(
        [
            (record.id, with_rates(facets, answered_of(record), rates))
            for record, facets in records
            if isinstance(record, Problem)
        ],
        schema,
    )


def _facet_rows(facets: Iterable[tuple[str, Mapping[str, str]]], schema: pa.Schema) -> pa.Table:
    rows = [
        {"problem": key, "name": name, "value": value}
        for key, values in facets
        for name, value in values.items()
        if value
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _count(table: pa.Table, name: str, account: Account) -> None:
    for source, count in _value_counts(table["source"]).items():
        account.kept[source][name] += count
    account.kept_languages += _value_counts(table["language"])


def _value_counts(column: pa.ChunkedArray) -> Counter[str]:
    return Counter({one["values"]: one["counts"] for one in column.value_counts().to_pylist()})
