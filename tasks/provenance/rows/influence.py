"""Follow rows to the checkpoints and releases they touched, and models back to their rows."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from data_schemas.row_lineage import (
    ModelTrace,
    RawRowPlace,
    RowOutcome,
    RowTrace,
    StageUse,
    TrainedRow,
)
from tasks.provenance.rows.find import RowSelection
from tasks.provenance.rows.graph import Graph, checkpoint_of
from tasks.provenance.rows.index import Index
from tasks.provenance.rows.tables import IS_TRAINED, among

_SUMS = [("times", "sum"), ("tokens", "sum"), ("advantage", "sum")]
HELD_OUT = "held out"


def trace_rows(index: Index, selection: RowSelection, show: int) -> RowTrace:
    """Follow rows forward.

    Args:
        index: of the store.
        selection: from `tasks.provenance.rows.find`.
        show: places and items to list.
    """
    where = pc.field("source_row").isin(selection.rows)
    outcomes = index.read("rows", where=where)
    held_out = outcomes.filter(among("kind", [HELD_OUT]))
    uses = summarise(index.graph, selection.uses)
    roots = [use.statement for use in uses if use.trained]
    return RowTrace(
        asked=selection.title,
        rows=len(selection.rows),
        places=_places(index, where, show),
        outcomes=tuple(
            RowOutcome(**{name: row[name] for name in RowOutcome.model_fields})
            for row in outcomes.slice(0, show).to_pylist()
        ),
        uses=uses,
        evaluations=_evaluations(index.graph, held_out["artifact"].unique().to_pylist()),
        checkpoints=index.graph.describe_all(index.graph.made_from(roots)),
    )


def trace_model(index: Index, statements: Sequence[str], show: int) -> tuple[ModelTrace, pa.Table]:
    """Find every row that trained a model, and what was made from it.

    Args:
        index: of the store.
        statements: that made the model.
        show: rows to list.

    Returns:
        The trace, and the table of all rows.
    """
    graph = index.graph
    made_of = graph.made_of(statements)
    uses = uses_of(index, made_of)
    rows = rows_of(uses)
    trace = ModelTrace(
        model=graph.describe(statements[0]),
        rows=len(rows["source_row"].unique()),
        uses=summarise(graph, uses),
        top=tuple(TrainedRow(**row) for row in rows.slice(0, show).to_pylist()),
        table="",
        made_of=graph.describe_all(made_of),
        made_from=graph.describe_all(
            one for one in graph.made_from(statements) if one not in statements
        ),
    )
    return trace, rows


def uses_of(index: Index, statements: Iterable[str]) -> pa.Table:
    """Read all uses by some stages."""
    return index.read("uses").filter(among("statement", statements))


def rows_of(uses: pa.Table) -> pa.Table:
    """Sum the uses that changed weights per row and item, the largest advantage first."""
    trained = uses.filter(IS_TRAINED)
    keys = ["source_row", "item", "source"]
    summed = trained.group_by(keys).aggregate([*_SUMS, ("statement", "count_distinct")])
    sums = summed.rename_columns(
        {f"{name}_sum": name for name, _ in _SUMS} | {"statement_count_distinct": "stages"}
    )
    order = [("advantage", "descending"), ("times", "descending"), ("source_row", "ascending")]
    return sums.select([*TrainedRow.model_fields]).sort_by(order)


def summarise(graph: Graph, uses: pa.Table) -> tuple[StageUse, ...]:
    """Sum uses per stage and outcome, stages in order."""
    aggregates = [*_SUMS, ("source_row", "count_distinct"), ("step", "distinct")]
    results = [
        _used_in(graph, row, trained=trained)
        for trained, part in ((True, IS_TRAINED), (False, ~IS_TRAINED))
        for row in uses.filter(part)
        .group_by(["statement", "outcome"])
        .aggregate(aggregates)
        .to_pylist()
    ]
    place = {name: n for n, name in enumerate(graph.in_order({use.statement for use in results}))}
    return tuple(
        sorted(results, key=lambda use: (place[use.statement], not use.trained, use.outcome))
    )


def _used_in(graph: Graph, row: dict, *, trained: bool) -> StageUse:
    statement = graph.statements[row["statement"]]
    checkpoint = checkpoint_of(statement)
    return StageUse(
        stage=statement.stage,
        statement=row["statement"],
        checkpoint=checkpoint.digest if checkpoint else "",
        outcome=row["outcome"],
        rows=row["source_row_count_distinct"],
        steps=tuple(sorted(step for step in row["step_distinct"] if step)),
        times=row["times_sum"],
        tokens=row["tokens_sum"],
        advantage=row["advantage_sum"],
        trained=trained,
    )


def _places(index: Index, where: pc.Expression, show: int) -> tuple[RawRowPlace, ...]:
    result = index.read("places", where=where).slice(0, show).to_pylist()
    files = index.read("files")
    uris = dict(zip(files["file"].to_pylist(), files["uri"].to_pylist(), strict=True))
    return tuple(
        RawRowPlace(uri=uris[place["file"]], file=place["file"], number=place["number"])
        for place in result
    )


def _evaluations(graph: Graph, artifacts: Sequence[str]) -> tuple[str, ...]:
    """List the statements that measured a model with these held-out sets."""
    return tuple(
        digest
        for digest, statement in graph.statements.items()
        if statement.stage.startswith("evaluate")
        and any(item.digest in artifacts for item in statement.inputs)
    )
