"""What becomes known of an execution that failed: MLflow's run, and a message to people."""

import json
import logging
import shutil
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from flyteidl.admin import execution_pb2
from flyteidl.core.execution_pb2 import WorkflowExecution
from flytekit.configuration.file import get_config_file
from flytekit.types.error import FlyteError

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.settings import CurationSettings
from tasks.errors import EngineError, PreemptionError
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.shipping import begin
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.provenance.lineage.stage import stage
from tasks.stages.failure import report_ended, tell_failure
from tasks.store.interface import store_at
from tests.admin import recording_admin
from tests.processes import serving


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
    for name in ("EACHPROMPT_WEBHOOK", "FLYTE_PLATFORM_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLYTECTL_CONFIG", str(tmp_path / "none"))
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
    ("error", "status"),
    [(PreemptionError("step 7 is safe"), "KILLED"), (EngineError("lost"), "FAILED")],
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

    with HTTPServer(("127.0.0.1", 0), Chat) as server, serving(server):
        monkeypatch.setenv("EACHPROMPT_WEBHOOK", f"http://127.0.0.1:{server.server_port}")
        yield texts


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
    store, heard, monkeypatch, caplog, tracking
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking)
    unusable = store.model_copy(update={"uri": "s3://bucket/no-mlflow"})

    with caplog.at_level(logging.INFO, logger="tasks"):
        fail(unusable, LOST)

    (text,) = heard
    assert LOST in text
    assert "Not told: " in caplog.text


NIGHT = Execution(id="night7-1", started=1.0, workflow="retrain", last=("night_page",))


def test_a_recovered_execution_that_fails_again_is_told_at_the_next_opening(
    store, heard, monkeypatch
):
    with pytest.raises(EngineError):
        work(store, NIGHT, EngineError("the disk is gone"))
    fail(store, LOST)
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "recovered")
    with pytest.raises(EngineError):  # its failure node is recovered, and does not run
        work(store, NIGHT, EngineError("the disk is gone again"))
    assert 1 == len(heard)

    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "night8")
    for _ in range(2):  # its task may be tried again
        report_ended(store, "night8-1")

    (_, text) = heard
    assert text.startswith("[failed] shop/production/recovered (retrain): ")
    assert text.endswith("-p shop -d production --recover recovered")
    assert "FAILED" == run_of(store, "night7-1")[0]


def test_people_hear_once_of_an_execution_that_failed(store, heard):
    work(store, NIGHT)
    fail(store, LOST)

    report_ended(store, "night8-1")

    assert 1 == len(heard)


def test_what_the_webhook_did_not_take_is_told_at_the_next_opening(store, monkeypatch, request):
    monkeypatch.setenv("EACHPROMPT_WEBHOOK", "http://127.0.0.1:1/secret")
    work(store, NIGHT)
    fail(store, LOST)
    heard = request.getfixturevalue("heard")

    report_ended(store, "night8-1")

    (text,) = heard
    assert LOST in text


@pytest.fixture
def admin(tmp_path, monkeypatch):
    """Flyte's admin, which says how executions ended, by name."""
    with recording_admin(tmp_path) as registered:
        address = registered.endpoint
        (tmp_path / "config.yaml").write_text(f"admin: {{endpoint: {address!r}, insecure: true}}")
        monkeypatch.setenv("FLYTECTL_CONFIG", str(tmp_path / "config.yaml"))
        get_config_file.cache_clear()
        yield registered.records
    get_config_file.cache_clear()


@pytest.mark.parametrize(
    ("phase", "status"),
    [
        (WorkflowExecution.RUNNING, "RUNNING"),
        (WorkflowExecution.SUCCEEDED, "FINISHED"),
        (WorkflowExecution.ABORTED, "KILLED"),
        (WorkflowExecution.TIMED_OUT, "FAILED"),
    ],
)
def test_flyte_says_how_an_execution_ended_that_said_nothing(store, heard, admin, phase, status):
    begin(Context(store, NIGHT))
    record = admin["night7"] = execution_pb2.Execution()
    record.closure.phase = phase
    record.closure.abort_metadata.principal, record.closure.abort_metadata.cause = "eve", "too dear"
    record.spec.metadata.principal = "ada@shop.example"
    (record.spec.launch_plan.project, record.spec.launch_plan.domain) = ("shop", "production")
    record.spec.launch_plan.name = "nightly_retrain"

    report_ended(store, "night8-1")

    assert status == run_of(store, "night7-1")[0]
    client = connect(store.tracking_uri)
    (run,) = client.search_runs([client.get_experiment_by_name("eachprompt").experiment_id])
    assert "ada@shop.example" == run.data.tags["mlflow.user"]
    assert "shop/production/nightly_retrain" == run.data.tags["flyte.launch_plan"]
    if status == "KILLED":
        (text,) = heard
        assert text.startswith("[terminated] shop/production/night7 (retrain): eve terminated it")
    assert (status in {"KILLED", "FAILED"}) == bool(heard)


def test_an_execution_of_which_flyte_knows_nothing_is_left_as_it_is(store, heard, admin):
    begin(Context(store, NIGHT.model_copy(update={"started": time.time()})))

    report_ended(store, "night8-1")

    assert ([], "RUNNING") == (heard, run_of(store, "night7-1")[0])


def test_an_execution_that_is_silent_for_longer_than_a_stage_may_wait_is_over(store, heard):
    begin(Context(store, NIGHT))  # in 1970

    report_ended(store, "night8-1")

    assert "KILLED" == run_of(store, "night7-1")[0]
    (text,) = heard
    assert text.startswith("[terminated] shop/production/night7 (retrain): nothing was heard of it")


def test_a_failure_is_marked_in_mlflow_although_the_webhook_does_not_answer(store, monkeypatch):
    monkeypatch.setenv("EACHPROMPT_WEBHOOK", "http://127.0.0.1:1/secret")
    work(store, Execution(id="night7-1", started=1.0, workflow="retrain"))

    fail(store)

    assert "FAILED" == run_of(store, "night7-1")[0]
