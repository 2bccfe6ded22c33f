"""What every stage gets from the runner: inputs, outputs, a statement, and a result of its own."""

from pathlib import Path
from typing import NamedTuple

import pytest

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    ReportRef,
    StoreRef,
)
from data_schemas.reports import SKIPPED_FILE
from data_schemas.settings import MergeSettings
from tasks.errors import EngineError
from tasks.provenance.lineage.statements import load_executions, load_statement
from tasks.stages.runner import PassThrough, Record, numbered, run
from tasks.store.interface import store_at
from tasks.store.local import new_object


class Pair(NamedTuple):
    model: CheckpointRef
    report: ReportRef


@pytest.fixture
def context(tmp_path):
    """A store without an MLflow that answers, and an execution by its name."""
    folder = str(tmp_path / "store")
    store = StoreRef(uri=folder, id=store_at(folder).open(), tracking_uri="http://127.0.0.1:9")
    return lambda name: Context(store, Execution(id=name, started=0.0))


@pytest.fixture
def rows(tmp_path):
    with new_object(tmp_path / "store") as (folder, committed):
        (folder / "rows").write_text("1 2 3")
    return DatasetRef(uri=committed.uri, digest=committed.digest)


def total(settings, inputs, outputs, work):
    numbers = (inputs["rows"] / "rows").read_text().split()
    (outputs["sum"] / "sum").write_text(str(sum(map(int, numbers))))
    work.entry.rows(len(numbers), 1)
    return {"numbers": len(numbers)}


def statements(context):
    """The statements of an execution by stage."""
    store = context.store.uri
    entries = load_executions(store, context.execution.id)
    return {one.stage: load_statement(store, one.statement) for one in entries}


def test_a_stage_is_its_function_and_the_runner_writes_its_statement(context, rows):
    here = context("first")
    result = run(Record("pool", total, ReportRef, "sum"), MergeSettings(), {"rows": rows}, here)
    statement = statements(here)["pool"]

    assert "6" == Path(result.uri, "sum").read_text()
    assert [("rows", rows.digest)] == [(one.role, one.digest) for one in statement.inputs]
    assert [("sum", result.digest)] == [(one.role, one.digest) for one in statement.outputs]
    assert {"numbers": 3} == statement.facts


def test_a_stage_that_is_done_once_is_done_by_one_of_two_executions(context, rows):
    calls = []

    def pair(settings, inputs, outputs, work, word):
        calls.append(work.context.execution.id)
        (outputs["model"] / "model").write_text(word)
        (outputs["report"] / "report").write_text(word)
        return {}

    record = Record("merge", pair, Pair, once=True)
    first, second, other = (
        run(record, settings, {"rows": rows}, context(name), ["a"])
        for name, settings in (
            ("first", MergeSettings()),
            ("second", MergeSettings()),
            ("third", MergeSettings(density=0.5)),
        )
    )
    assert ["first", "third"] == calls
    assert first == second
    assert first.model.statement != other.model.statement
    assert {} == statements(context("second"))


def test_what_is_passed_on_is_said_and_is_nothing_that_a_later_run_could_take(context, rows):
    model = CheckpointRef(uri=rows.uri, digest=rows.digest)

    def skip(settings, refs, store):
        return PassThrough("start", "there is nothing to add")

    record = Record("merge", total, Pair, skip=skip, once=True)
    for name in ("first", "second"):
        result = run(record, MergeSettings(), {"start": model, "rows": rows}, context(name))
        statement = statements(context(name))["merge"]
        assert model == result.model
        assert {"skipped": "there is nothing to add"} == statement.facts
        assert ["start"] == [one.role for one in statement.inputs]
        assert ["report"] == [one.role for one in statement.outputs]
        (file,) = (one for one in Path(result.report.uri).iterdir() if one.name == SKIPPED_FILE)
        assert "there is nothing to add" in file.read_text()


def test_a_stage_that_shares_reads_what_its_execution_made_of_the_same_under_another_name(
    context, rows
):
    def again(settings, inputs, outputs, work):
        (outputs["sum"] / "sum").write_text(work.name)
        return {"is_shared": int("earlier" in inputs)}

    record = Record("evaluate", again, ReportRef, "sum", shares="earlier")
    first, other = context("first"), context("other")
    for name, settings, place in (
        ("evaluate/one", MergeSettings(), first),
        ("evaluate/two", MergeSettings(), first),
        ("evaluate/three", MergeSettings(density=0.5), first),
        ("evaluate/four", MergeSettings(), other),
    ):
        run(record, settings, {"rows": rows}, place, name=name)

    shared = {**statements(first), **statements(other)}
    assert {"evaluate/one": 0, "evaluate/two": 1, "evaluate/three": 0, "evaluate/four": 0} == {
        name: one.facts["is_shared"] for name, one in shared.items()
    }


def test_a_stage_that_fails_commits_none_of_its_outputs(context, rows, tmp_path):
    def broken(settings, inputs, outputs, work):
        (outputs["sum"] / "sum").write_text("5")
        raise EngineError("out of memory")

    before = set((tmp_path / "store" / "objects").iterdir())
    with pytest.raises(EngineError, match="out of memory"):
        run(Record("pool", broken, ReportRef, "sum"), MergeSettings(), {}, context("first"))
    assert before == set((tmp_path / "store" / "objects").iterdir())
    assert {} == statements(context("first"))


def test_inputs_of_a_kind_are_numbered_from_one(rows):
    assert {"part/1": rows, "part/2": rows} == numbered("part", [rows, rows])
