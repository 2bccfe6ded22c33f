"""Select problems by the pass rates of models: the last filter, after problems are held out."""

# pyright: basic
# pyarrow ships no types.

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa

from data_schemas.rows import Outcome, Problem
from tasks.curation.cleaning.pass_rates import PASS_RATES, fault, with_rates
from tasks.curation.items import Item
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import RefusalTables
from tasks.errors import DataError
from tasks.formats.solve_rates import Answered, Bands, Rates


def select(
    shards: Shards, refused: RefusalTables, suites: Sequence[Item], rates: Rates, bands: Bands
) -> dict[str, dict[str, int]]:
    """Drop the problems outside of the bands of their source; what is held out stays as it is.

    Args:
        shards: with what is still in the set.
        refused: gets the problems outside.
        suites: everything to evaluate with.
        rates: as models were measured.
        bands: by source.

    Returns:
        By source, how many problems with rates are `matched`, in the set before this filter, and
        how many are `unmatched`: left out, or there with another row or gold answer.

    Raises:
        DataError: there are rates, and none is of a problem in the set.
    """
    if not rates and not bands:
        return {}
    matches = {answered_of(item.record) for item in suites if isinstance(item.record, Problem)}
    matches &= rates.keys()
    for shard in range(len(shards)):
        living = shards.living(shard)
        living = living[shards.is_problem[shards.starts[shard] + living]]
        table = pa.Table.from_batches([shards.batch(shard)]).select(["source", *_NAMED])
        table = table.take(pa.array(living))
        dropped = []
        rows = zip(living, table["source"].to_pylist(), problem_facets(table, rates), strict=True)
        for place, source, (problem, facets) in rows:
            if problem in rates:
                matches.add(problem)
            reason, detail = fault(facets, bands.get(source, {}).values())
            if reason:
                row = int(shards.starts[shard] + place)
                dropped.append((row, Outcome.DROPPED, reason, detail))
                shards.alive[row] = False
        refused.add(shards.refuse(PASS_RATES, dropped))
    if rates and not matches:
        raise DataError(
            f"none of {len(rates)} problems with solve rates is in the set, such as "
            f"{next(iter(rates))[0]}. Add the sources that the models answered, or leave the rates "
            "out."
        )
    return _count_matches(matches, rates)


_NAMED = ("facets", "id", "source_row", "answer")


def problem_facets(table: pa.Table, rates: Rates) -> Iterator[tuple[Answered, dict[str, str]]]:
    """Yield every problem of a table with what its source and models say of it."""
    columns = (table[name].to_pylist() for name in _NAMED)
    for facets, *problem in zip(*columns, strict=True):
        own = json.loads(facets) if facets else {}
        yield tuple(problem), with_rates(own, tuple(problem), rates)


def answered_of(problem: Problem) -> Answered:
    """Return what the rates of a problem are looked up by."""
    return problem.id, problem.source_row, problem.answer


def _count_matches(matches: set[Answered], rates: Rates) -> dict[str, dict[str, int]]:
    """Count problems and not measurements: one whose row changed may have been measured twice."""
    there = {problem for problem, *_ in matches}
    sources = {problem: measured.source for (problem, *_), measured in rates.items()}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"matched": 0, "unmatched": 0})
    for problem, source in sources.items():
        counts[source]["matched" if problem in there else "unmatched"] += 1
    return dict(counts)
