"""MLflow, lost and filled again from the store: nothing is missing, nothing is twice."""

import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import Context, StoreRef
from data_schemas.settings import MergeSettings
from tasks.provenance.lineage.rebuild import rebuild
from tasks.provenance.lineage.stage import stage
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train
from tests.tracked import content


@pytest.fixture
def empty(store, tmp_path, migrated) -> StoreRef:
    shutil.copy(migrated, tmp_path / "empty.db")
    return store.model_copy(update={"tracking_uri": f"sqlite:///{tmp_path / 'empty.db'}"})


def three_executions(store, execution) -> None:
    """A release, a failed stage that was tried again, a refusal, and a second release."""
    run_all(store, execution)
    second = execution.model_copy(update={"id": "exec-2"})
    raw = make_raw(store, second, b"c,d\n")
    with (
        pytest.raises(ZeroDivisionError),
        stage("sft/reasoning", MergeSettings(), Context(store, second), "code-2") as record,
    ):
        record.metrics(1, {"a": 1 / 0})
    release(store, second, train(store, second, raw), released=False)
    run_all(store, execution.model_copy(update={"id": "exec-3"}), b"e,f\n")


def test_an_empty_mlflow_gets_the_same_runs_curves_models_versions_and_aliases(
    store, execution, empty
):
    three_executions(store, execution)
    done = rebuild(empty)

    expected = content(store.tracking_uri)
    assert expected == content(empty.tracking_uri)
    assert {"eachprompt-tiny": {"released": "3", "previous": "1"}} == expected["aliases"]
    assert (9, 0, "") == (done.runs, done.derived, done.broken_file)


@pytest.mark.slow
def test_rebuilding_twice_changes_nothing(store, execution, empty):
    run_all(store, execution)
    rebuild(empty)
    once = content(empty.tracking_uri)
    rebuild(empty)

    assert once == content(empty.tracking_uri)


@pytest.mark.slow
def test_what_is_missing_in_a_full_mlflow_is_added(store, execution):
    run_all(store, execution)
    before = content(store.tracking_uri)
    rebuild(store)

    assert before == content(store.tracking_uri)


@pytest.mark.slow
def test_without_spools_the_statements_give_everything_but_curves(store, execution, empty):
    run_all(store, execution)
    run_all(store, execution.model_copy(update={"id": "exec-2"}), b"c,d\n")
    shutil.rmtree(Path(store.uri) / "spool")
    done = rebuild(empty)

    def without_clocks_and_curves(tracking_uri: str) -> dict:
        found = content(tracking_uri)
        for run in found["runs"]:
            del run["times"]
            run["metrics"] = [(name, value) for name, step, value, _ in run["metrics"] if step == 0]
        found["runs"].sort(key=str)
        return found

    assert without_clocks_and_curves(store.tracking_uri) == without_clocks_and_curves(
        empty.tracking_uri
    )
    assert (6, 6) == (done.runs, done.derived)


@pytest.mark.slow
def test_a_broken_database_is_kept_and_a_new_one_filled(store, execution, tmp_path):
    run_all(store, execution)
    path = tmp_path / "other.db"
    path.write_bytes(b"not a database")
    broken = store.model_copy(update={"tracking_uri": f"sqlite:///{path}"})
    done = rebuild(broken)

    assert b"not a database" == Path(done.broken_file).read_bytes()
    assert content(store.tracking_uri) == content(broken.tracking_uri)


@pytest.mark.slow
def test_a_damaged_statement_without_spool_is_left_out_by_name(store, execution, empty, caplog):
    model = run_all(store, execution)
    shutil.rmtree(Path(store.uri) / "spool")
    path = Path(store.uri) / "statements" / f"{model.statement}.json"
    path.write_bytes(path.read_bytes() + b" ")
    done = rebuild(empty)

    assert 2 == done.runs
    assert f"left out: {path}" in caplog.text
