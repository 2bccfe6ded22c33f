"""Whether the version that a candidate was trained from is still the released one."""

import shutil

import pytest

from data_schemas.artifacts import CheckpointRef, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from tasks.lineage.stage import stage
from tasks.release.start import is_released
from tasks.store.interface import store_at


@pytest.fixture
def release(tmp_path, migrated):
    """Release a model under a name; returns its statement."""
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    store = StoreRef(uri=str(folder), id=identity, tracking_uri=f"sqlite:///{folder}/mlflow.db")

    def release(execution: str, content: str, *, released: bool = True) -> str:
        when = Execution(id=execution, started=0.0)
        with stage("release", ReleaseSettings(), store, when, "c") as record:
            with record.output("model") as out:
                (out / "model.safetensors").write_text(content)
            record.register("model", "tiny", released=released, tags={})
            return record.ref("model", CheckpointRef).statement

    def ask(statement: str, execution: str) -> bool:
        return is_released("tiny", statement, execution, store.tracking_uri)

    release.ask = ask
    return release


def test_the_start_is_released_until_another_execution_releases(release):
    assert release.ask("any", "e2") is False

    first = release("e1", "first")
    assert release.ask(first, "e2")
    release("e3", "refused", released=False)
    assert release.ask(first, "e2")

    release("e4", "second")
    assert not release.ask(first, "e2")


def test_a_task_that_is_tried_again_after_it_has_registered_is_not_stale(release):
    first = release("e1", "first")
    release("e2", "second")

    assert release.ask(first, "e2")
    assert not release.ask(first, "e20")
