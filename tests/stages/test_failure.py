"""What becomes known of an execution that failed: MLflow's run, and a message to people."""

import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from flytekit.types.error import FlyteError

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.settings import CurationSettings
from tasks.errors import EngineError, Preempted
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.shipping import begin
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.provenance.lineage.stage import stage
from tasks.stages.failure import tell_failure
from tasks.store.interface import store_at


@pytest.fixture
def store(tmp_path, migrated, monkeypatch):
    """A store in a pod of the execution `shop/production/night7`."""
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    tracking = f"sqlite:///{folder / 'mlflow.db'}"
    find_signer()  # a pod does not make a key
    for part, value in (("PROJECT", "shop"), ("DOMAIN", "production"), ("ID", "night7")):
        monkeypatch.setenv(f"FLYTE_INTERNAL_EXECUTION_{part}", value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking)
    monkeypatch.delenv("EACHPROMPT_WEBHOOK", raising=False)
    return StoreRef(uri=str(folder), id=identity, tracking_uri=tracking)


def run_of(store, name):
    """Status of the run of an execution, and its description."""
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt")
    runs = client.search_runs([experiment.experiment_id])
    (found,) = [run for run in runs if run.info.run_name.startswith(name)]
    return found.info.status, found.data.tags.get("mlflow.note.content", "")


def work(store, execution, error=None):
    """One stage of an execution."""
    with stage("curate", CurationSettings(), Context(store, execution), "code"):
        if error:
            raise error


def fail(store, message="Trace: ...\n  SettingsError: s3://b/spool: Unable to locate credentials"):
    """What Flyte calls."""
    tell_failure.task_function(
        store=store.uri, err=FlyteError(message=message, failed_node_id="n3")
    )


def test_mlflow_says_failed_of_an_execution_whose_stages_all_finished(store):
    execution = Execution(id="night7-1", started=1.0, workflow="retrain")
    begin(Context(store, execution))
    work(store, execution)
    assert "FINISHED" == run_of(store, "night7-1")[0]

    fail(store)

    status, note = run_of(store, "night7-1")
    assert "FAILED" == status
    assert note.startswith("Failed: ")
    assert "Unable to locate credentials" in note


def test_an_execution_that_was_recovered_finishes_or_fails_again(store, monkeypatch):
    execution = Execution(id="night7-1", started=1.0, workflow="retrain")
    work(store, execution)
    fail(store)
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "recovered")

    work(store, execution)
    assert "FINISHED" == run_of(store, "night7-1")[0]

    fail(store)
    assert "FAILED" == run_of(store, "night7-1")[0]


def test_what_failed_before_there_was_a_run_changes_no_other(store):
    work(store, Execution(id="other-1", started=1.0, workflow="retrain"))
    connect(store.tracking_uri)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "night8")
        fail(store)

    assert "FINISHED" == run_of(store, "other-1")[0]


@pytest.mark.parametrize(
    ("error", "status"), [(Preempted("step 7 is safe"), "KILLED"), (EngineError("lost"), "FAILED")]
)
def test_an_execution_that_was_stopped_is_killed_and_not_failed(store, error, status):
    execution = Execution(id="night7-1", started=1.0, workflow="retrain")

    with pytest.raises(type(error)):
        work(store, execution, error)

    assert status == run_of(store, "night7-1")[0]


@pytest.fixture
def heard(monkeypatch):
    """What the webhook was sent."""
    texts = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            texts.append(json.loads(body)["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("EACHPROMPT_WEBHOOK", f"http://127.0.0.1:{server.server_port}")
        yield texts
        server.shutdown()
        thread.join()


LOST = "RetriesExhausted [3/3]: SYSTEM UnexpectedObjectDeletion: the pod is gone"


def test_people_hear_why_it_failed_and_how_it_goes_on(store, heard):
    fail(store, LOST)

    (text,) = heard
    assert text.startswith(f"[failed] shop/production/night7: {LOST}")
    assert text.endswith("flytectl create execution -p shop -d production --recover night7")


def test_nobody_is_sent_to_recover_what_has_the_same_settings_again(store, heard):
    fail(store)

    (text,) = heard
    assert "SettingsError: s3://b/spool: Unable to locate credentials" in text
    assert "start a new execution" in text
    assert "--recover" not in text


@pytest.mark.parametrize(
    "tracking", ["http://127.0.0.1:1", "nonsense", ""], ids=["away", "wrong", "missing"]
)
def test_people_hear_of_a_failure_whatever_is_wrong_with_mlflow(
    store, heard, monkeypatch, capsys, tracking
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking)
    unusable = store.model_copy(update={"uri": "s3://bucket/no-mlflow"})

    fail(unusable, LOST)

    (text,) = heard
    assert LOST in text
    assert "Not told: " in capsys.readouterr().out


def test_a_failure_is_marked_in_mlflow_although_the_webhook_does_not_answer(store, monkeypatch):
    monkeypatch.setenv("EACHPROMPT_WEBHOOK", "http://127.0.0.1:1/secret")
    work(store, Execution(id="night7-1", started=1.0, workflow="retrain"))

    fail(store)

    assert "FAILED" == run_of(store, "night7-1")[0]
