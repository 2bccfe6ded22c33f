"""The shell of a small phase, on a store and a disk that may be lost."""

import json
import shutil
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.artifacts import CheckpointRef, Execution, GradedRef, StoreRef
from data_schemas.pass_rates import Band, GradedProblem
from tasks.rl.phase import PROBLEMS_FILE
from tasks.stages.rl import rl
from tasks.store.interface import store_at
from tasks.store.local import new_object

STEPS = 3


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store, and a separate disk that may be lost."""
    monkeypatch.setenv("EACHPROMPT_STATE", str(tmp_path / "disk"))
    folder = tmp_path / "store"
    return StoreRef(uri=str(folder), id=store_at(str(folder)).open(), tracking_uri="http://nobody")


@pytest.fixture
def phase(store, tiny_moe, problems, settings):
    """Run the shell of a small phase, as its task does."""
    made = []
    with new_object(Path(store.uri)) as (folder, committed):
        shutil.copytree(tiny_moe, folder, dirs_exist_ok=True)
    made.append(CheckpointRef(uri=committed.uri, digest=committed.digest))
    graded = [
        GradedProblem(**p.model_dump(), pass_rate=0.5, mean_tokens=5.0, band=Band.MEDIUM)
        for p in problems
    ]
    with new_object(Path(store.uri)) as (folder, committed):
        write_table(folder / PROBLEMS_FILE, GradedProblem, graded)
    made.append(GradedRef(uri=committed.uri, digest=committed.digest))

    def run(
        tracking_uri: str = "http://127.0.0.1:9",
        execution: str = "exec-1",
        where: StoreRef = store,
        **changes: object,
    ):
        # Without Flyte around it: what raises inside would keep Flyte's own folders open.
        return rl.task_function(
            settings=settings.model_copy(update={"steps": STEPS} | changes),
            name="rl/one",
            start=made[0],
            graded=made[1],
            store=where.model_copy(update={"tracking_uri": tracking_uri}),
            execution=Execution(id=execution, started=0.0),
        )

    return run


TRAINED_ON = "reward/mean"


@pytest.fixture
def spooled(store):
    """Steps of which a metric waits for MLflow, once for each time that it was logged."""

    def read(metric: str = TRAINED_ON) -> list[int]:
        lines = [
            json.loads(line)
            for path in Path(store.uri, "spool").glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [event["step"] for event in lines if metric in event.get("values", ())]

    return read
