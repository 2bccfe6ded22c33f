"""The shell of RL while what it reports to is away: nobody waits, no row is lost."""

import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from flytekit.exceptions.user import FlyteRecoverableException

from data_schemas.artifacts import Context, Execution
from tasks.durability.upload import fetch_newest
from tasks.platform.progress import ProgressBar
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.stage import stage, sync
from tasks.provenance.lineage.statements import load_statement
from tasks.store.interface import store_at

STEPS = 3


@pytest.fixture
def silent():
    """A server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_rl_without_mlflow_loses_no_row(store, phase, spooled, tmp_path):
    trained = phase("http://127.0.0.1:9")

    assert [1, 2, 3] == spooled()
    assert STEPS == load_statement(store.uri, trained.report.statement).facts["steps"]
    # The phase is over: only its results are left.
    assert not list((tmp_path / "disk/state").iterdir())
    (left,) = store_at(f"{store.uri}/state").list_files()
    assert left.endswith(".json")

    tracking_uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert sync(store.model_copy(update={"tracking_uri": tracking_uri}))

    client = connect(tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt").experiment_id
    (run,) = client.search_runs([experiment], "tags.`eachprompt.stage` LIKE '%'")
    history = client.get_metric_history(run.info.run_id, "reward/mean")
    assert [1, 2, 3] == [metric.step for metric in history]
    assert [] == spooled()


@pytest.fixture
def held_back() -> Iterator[tuple[str, threading.Event]]:
    """The address of a server that answers nothing, and then refusals once the event is set."""
    answers = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.wait()
            self.send_error(400)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    answers.set()
    server.shutdown()
    server.server_close()


def test_a_server_that_never_answers_does_not_hold_a_step_up(
    store, settings, held_back, spooled, monkeypatch
):
    address, answers = held_back
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
    monkeypatch.setattr("tasks.provenance.lineage.connection.DEADLINE_S", 0.1)
    monkeypatch.setattr("tasks.provenance.lineage.stage._SHIP_EVERY_S", 0.0)
    context = Context(
        store.model_copy(update={"tracking_uri": address}), Execution(id="e", started=0.0)
    )
    with stage("rl/one", settings, context, "code") as record:
        # From here on, a step that waited for a reply would stand still: 29 minutes in all.
        monkeypatch.setattr("tasks.provenance.lineage.connection.DEADLINE_S", 60.0)
        for step in range(1, 30):
            record.metrics(step, {"reward/mean": 0.5})
        answers.set()

    assert list(range(1, 30)) == spooled()


def test_rl_with_a_server_that_never_answers_ends_with_every_row(
    phase, silent, spooled, monkeypatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    phase(silent)

    assert [1, 2, 3] == spooled()
    # Known once the step has ended, so a row of its own.
    assert [1, 2, 3] == spooled("tokens/accepted_per_s")


@pytest.mark.slow
def test_a_phase_whose_machine_is_lost_goes_on_from_the_store(
    phase, spooled, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("tasks.rl.phase.finish", no_finish)
    with pytest.raises(OSError, match="the disk is gone"):
        phase("http://127.0.0.1:9")
    monkeypatch.undo()
    monkeypatch.setenv("EACHPROMPT_STATE", str(tmp_path / "another disk"))
    shutil.rmtree(tmp_path / "disk")

    phase("http://127.0.0.1:9")

    assert f"state of step {STEPS} was downloaded" in caplog.text
    assert [1, 2, 3] == spooled()


def test_a_preempted_pod_uploads_its_step_and_requests_a_retry(phase, tmp_path, monkeypatch):
    class Terminating(ProgressBar):
        def advance(self):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("tasks.stages.rl.ProgressBar", Terminating)
    with pytest.raises(FlyteRecoverableException, match="SIGTERM after committed step 1"):
        phase("http://127.0.0.1:9")

    (uri,) = (tmp_path / "store/state").iterdir()
    assert 1 == fetch_newest(str(uri), tmp_path / "another disk" / "state" / uri.name)


def no_finish(*_: object) -> None:
    raise OSError("the disk is gone")
