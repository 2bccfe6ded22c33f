"""The stage table, read back from a store."""

from data_schemas.statements import ExecutionRecord, Input, Output, Statement
from tasks.pages.stage_rows import stage_rows
from tasks.provenance.lineage.statements import save_execution, save_statement
from tests.records import filled


def _save(store, stage, *, executions, inputs=(), settings="{}", rows=(0, 0)):
    """Save one statement and the executions that made it; return its digest."""
    statement = filled(
        Statement,
        stage=stage,
        settings=settings,
        inputs=tuple(
            Input(role=role, uri="u", digest=producer[:8], statement=producer)
            for role, producer in inputs
        ),
        outputs=(Output(role="out", uri="u", digest=stage),),
    )
    digest = save_statement(str(store), statement)
    for execution, started in executions:
        save_execution(
            str(store),
            filled(
                ExecutionRecord,
                execution=execution,
                stage=stage,
                statement=digest,
                started=started,
                seconds=started / 10,
                rows_in=rows[0],
                rows_out=rows[1],
            ),
        )
    return digest


def test_a_second_run_shows_what_came_from_the_cache_and_what_ran(tmp_path):
    curated = _save(tmp_path, "curate", executions=[("first", 100.0)], rows=(50, 40))
    _save(
        tmp_path,
        "rl/one",
        executions=[("first", 200.0)],
        inputs=[("problems", curated)],
        settings='{"steps": 40}',
    )
    new = _save(
        tmp_path,
        "rl/one",
        executions=[("second", 300.0)],
        inputs=[("problems", curated)],
        settings='{"steps": 80}',
        rows=(40, 80),
    )

    rows = stage_rows(str(tmp_path), "second", [new])

    assert ["curate", "rl/one"] == [row.stage for row in rows]
    assert [False, True] == [row.executed for row in rows]
    assert (50, 40, 10.0) == (rows[0].rows_in, rows[0].rows_out, rows[0].seconds)
    assert "same code, settings and inputs as execution first on" in rows[0].why
    assert ("settings changed: steps 40 -> 80", 30.0) == (rows[1].why, rows[1].seconds)


def test_an_execution_reads_the_same_after_later_ones(tmp_path):
    curated = _save(tmp_path, "curate", executions=[("first", 100.0)])
    _save(tmp_path, "curate", executions=[("second", 200.0)], settings='{"seed": 1}')

    (row,) = stage_rows(str(tmp_path), "first", [curated])

    assert "first time in this store" == row.why


def test_a_stage_another_execution_repeated_keeps_its_own_time(tmp_path):
    digest = _save(tmp_path, "curate", executions=[("first", 100.0), ("second", 200.0)])

    (row,) = stage_rows(str(tmp_path), "first", [digest])

    assert (True, 10.0) == (row.executed, row.seconds)


def test_a_result_without_producer_has_no_stages(tmp_path):
    assert () == stage_rows(str(tmp_path), "first", [""])
