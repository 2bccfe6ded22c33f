"""The shell of fine-tuning: one run at a time does the work, the next one returns its results."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from data_schemas.arrow import write_table
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.rows import DEMONSTRATIONS, Demonstration, Parent
from data_schemas.settings import SFTSettings
from tasks.stages.sft import sft
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tests.training.sft.test_train import demonstration

SETTINGS = SFTSettings(epochs=1, batch_tokens=256, entropy_prompts=2)


@pytest.fixture
def tune(tiny_moe, tmp_path):
    """Fine-tune as the task does, on a store without an MLflow that answers."""
    folder = tmp_path / "store"
    store = StoreRef(
        uri=str(folder), id=store_at(str(folder)).open(), tracking_uri="http://127.0.0.1:9"
    )
    with new_object(folder) as (path, base):
        shutil.copytree(tiny_moe, path, dirs_exist_ok=True)
    with new_object(folder) as (path, curated):
        rows = [demonstration(number, parent) for number in range(20) for parent in Parent]
        write_table(path / DEMONSTRATIONS, Demonstration, rows)

    def run(execution: str, settings: SFTSettings = SETTINGS, parent: Parent = Parent.REASONING):
        return cast("Any", sft).task_function(
            settings=settings,
            parent=parent,
            curated=DatasetRef(uri=curated.uri, digest=curated.digest, statement=""),
            base=CheckpointRef(uri=base.uri, digest=base.digest, statement=""),
            store=store,
            execution=Execution(id=execution, started=0.0),
        )

    return run


def test_a_second_run_returns_what_the_first_one_committed(tune, tmp_path, caplog):
    first = tune("first")
    second = tune("second")

    assert first == second
    assert "sft/reasoning was finished by first; its results are used" in caplog.text
    assert ["first"] == [path.name for path in Path(tmp_path, "store", "executions").iterdir()]
    assert not list(Path(tmp_path, "store", "state").glob("*.lease"))


def test_another_parent_is_other_work_and_no_epochs_are_none(tune, tmp_path):
    other = tune("second", parent=Parent.COMMERCE)
    passed = tune("third", SETTINGS.model_copy(update={"epochs": 0}))

    assert other.model.digest != passed.model.digest
    assert 1 == len(list(Path(tmp_path, "store", "state").glob("*.json")))
