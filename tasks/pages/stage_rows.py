"""The stage table of one execution, from the statements and records in its store."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.statements import ExecutionRecord
from tasks.pages.explanation import StatementExecution, explain
from tasks.provenance.lineage.statements import chain, load_executions, load_statement
from tasks.store.interface import store_at


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of a run, for display."""

    stage: str
    executed: bool
    """False: served from the cache."""
    seconds: float
    """Seconds of its execution, now or when it was cached."""
    rows_in: int
    rows_out: int
    why: str
    gpu_seconds: float = 0.0
    """Seconds times the GPUs that it reserved."""


def stage_rows(store: str, execution: str, results: Sequence[str]) -> tuple[StageRow, ...]:
    """List every stage that led to the results of an execution, producers first.

    Args:
        store: uri of the store.
        execution: id of the execution.
        results: statement digests of the last stages' outputs.

    Raises:
        DataError: a statement is missing.
        TamperError: a statement was changed.
    """
    statements = chain(store, results)
    records = _all_records(store)
    stages = {statement.stage for statement in statements.values()}
    others = [
        record for record in records if record.execution != execution and record.stage in stages
    ]
    now = {record.statement: record for record in records if record.execution == execution}
    latest = {record.statement: record for record in others} | now
    loaded = {digest: load_statement(store, digest) for digest in {r.statement for r in others}}
    until = {digest: record.started for digest, record in now.items()}
    return tuple(
        StageRow(
            stage=statement.stage,
            executed=digest in now,
            seconds=latest[digest].seconds if digest in latest else 0.0,
            rows_in=latest[digest].rows_in if digest in latest else 0,
            rows_out=latest[digest].rows_out if digest in latest else 0,
            why=explain(
                statement,
                digest in now,
                [
                    StatementExecution(loaded[record.statement], record)
                    for record in others
                    if record.started < until.get(digest, math.inf)
                ],
            ),
            gpu_seconds=latest[digest].gpu_seconds if digest in latest else 0.0,
        )
        for digest, statement in statements.items()
    )


def _all_records(store: str) -> list[ExecutionRecord]:
    """Read every execution record of the store, oldest first."""
    names = store_at(f"{store}/executions").list_files()
    executions = sorted({name.split("/")[0] for name in names})
    records = [record for name in executions for record in load_executions(store, name)]
    return sorted(records, key=lambda record: record.started)
