"""The shell of RL while what it reports to is away: nobody waits, no row is lost."""

import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
from flytekit.exceptions.user import FlyteRecoverableException

from data_schemas.arrow import write_table
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.graded import Band, GradedProblem
from tasks.lineage.catalogue import connect
from tasks.lineage.stage import stage, sync
from tasks.lineage.statements import load_statement
from tasks.rl.durability.upload import fetch_newest
from tasks.rl.run import PROBLEMS_FILE
from tasks.rl.task import rl
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
    made.append(DatasetRef(uri=committed.uri, digest=committed.digest))

    def run(tracking_uri: str):
        # Without Flyte around it: what raises inside would keep Flyte's own folders open.
        return rl.task_function(
            settings=settings.model_copy(update={"steps": STEPS}),
            name="rl/one",
            start=made[0],
            graded=made[1],
            store=store.model_copy(update={"tracking_uri": tracking_uri}),
            execution=Execution(id="exec-1", started=0.0),
        )

    return run


@pytest.fixture
def silent():
    """A server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def spooled(store):
    lines = [
        json.loads(line)
        for path in Path(store.uri, "spool").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return [event["step"] for event in lines if event["kind"] == "metrics"]


def test_rl_without_mlflow_loses_no_row(store, phase, tmp_path):
    trained = phase("http://127.0.0.1:9")

    assert [1, 2, 3] == spooled(store)
    assert STEPS == load_statement(store.uri, trained.report.statement).facts["steps"]
    # The phase is over: its state is nowhere any more.
    assert not list((tmp_path / "disk/state").iterdir())
    assert not store_at(f"{store.uri}/state").list_files()

    tracking_uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert sync(store.model_copy(update={"tracking_uri": tracking_uri}))

    client = connect(tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (run,) = client.search_runs([experiment])
    history = client.get_metric_history(run.info.run_id, "reward/mean")
    assert [1, 2, 3] == [metric.step for metric in history]
    assert [] == spooled(store)


def test_a_server_that_never_answers_does_not_hold_a_step_up(store, settings, silent, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setattr("tasks.lineage.stage._SHIP_EVERY_S", 0.0)
    where = store.model_copy(update={"tracking_uri": silent})
    slowest = 0.0
    with stage("rl/one", settings, where, Execution(id="e", started=0.0), "code") as record:
        for step in range(1, 30):
            started = time.monotonic()
            record.metrics(step, {"reward/mean": 0.5})
            slowest = max(slowest, time.monotonic() - started)

    assert slowest < 0.5
    assert list(range(1, 30)) == spooled(store)


def test_rl_with_a_server_that_never_answers_ends_with_every_row(store, phase, silent, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    phase(silent)

    assert [1, 2, 3] == spooled(store)


def test_a_phase_whose_machine_is_lost_goes_on_from_the_store(
    store, phase, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("tasks.rl.run.finish", no_finish)
    with pytest.raises(OSError, match="the disk is gone"):
        phase("http://127.0.0.1:9")
    monkeypatch.undo()
    monkeypatch.setenv("EACHPROMPT_STATE", str(tmp_path / "another disk"))
    shutil.rmtree(tmp_path / "disk")

    phase("http://127.0.0.1:9")

    assert f"state of step {STEPS} was downloaded" in caplog.text
    assert [1, 2, 3] == spooled(store)


def test_a_preempted_pod_uploads_its_step_and_requests_a_retry(store, phase, tmp_path, monkeypatch):
    def telling(steps, *_):
        for number, step in enumerate(steps):
            if number == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            yield step

    monkeypatch.setattr("tasks.rl.task.progress", telling)
    with pytest.raises(FlyteRecoverableException, match="SIGTERM after committed step 1"):
        phase("http://127.0.0.1:9")

    (uri,) = (tmp_path / "store/state").iterdir()
    assert 1 == fetch_newest(str(uri), tmp_path / "another disk")


def no_finish(*_: object) -> None:
    raise OSError("the disk is gone")
