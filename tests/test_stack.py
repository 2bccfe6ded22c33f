"""The chain on PostgreSQL, an MLflow server with a password and S3, while they fail.

Nothing here is done as an administrator: pods and auditor have the rights of the guide's table.
What a stage acknowledged is never lost, and each error says whether another attempt helps: an
EngineError is tried again by Flyte, a SettingsError or DataError is not.

    make test-stack
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from containers.stack import PODS
from data_schemas.artifacts import CheckpointRef, Execution, StoreRef
from tasks.errors import DataError, DiskFullError, EngineError, SettingsError
from tasks.provenance.audit.collection import collect, delete, read_keep
from tasks.provenance.lineage.connection import connect, require_access
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.statements import chain
from tasks.store.interface import store_at
from tasks.store.objects import object_problems
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train
from tests.test_pipeline import SAMPLE_WORLD

pytestmark = [pytest.mark.stack, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[1]


@pytest.fixture
def store(stack, monkeypatch, tmp_path) -> Iterator[StoreRef]:
    """An empty store on the stack, on a machine without any files of it."""
    stack.up()
    for name, text in stack.access.variables().items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # a loaded machine is no outage
    boto3.setup_default_session()  # a session reads the variables once
    uri = f"s3://eachprompt/{tmp_path.name}"
    made = StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=stack.access.mlflow)
    yield made
    stack.up()
    shutil.rmtree(workplace(made), ignore_errors=True)


def execution(store: StoreRef) -> Execution:
    """An execution that no other test has."""
    return Execution(id=f"{store.id[:8]}", started=1000.0)


def runs_of(store: StoreRef) -> dict[str, str]:
    """Status by key of the runs that MLflow has of a store."""
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name("eachprompt")
    runs = client.search_runs([experiment.experiment_id], f"tags.`eachprompt.store` = '{store.id}'")
    return {
        run.data.tags["eachprompt.key"]: run.info.status
        for run in runs
        if "eachprompt.stage" in run.data.tags
    }


def assert_whole(store: StoreRef, ref: CheckpointRef) -> None:
    """Three finished runs, a registered version of this content, and every byte as committed."""
    assert ["FINISHED"] * 3 == list(runs_of(store).values())
    version = Lookup(store.tracking_uri).registered("eachprompt-tiny", ref.statement)
    assert version is not None
    assert ref.digest == version.tags["sha256"]
    for statement in chain(store.uri, [ref.statement]).values():
        for output in statement.outputs:
            assert [] == list(object_problems(output.uri, output.digest))


def test_a_release_on_the_stack_is_registered_and_whole(store):
    ref = run_all(store, execution(store))

    assert ref.uri.startswith("s3://eachprompt/")
    assert_whole(store, ref)


@pytest.mark.parametrize(
    ("service", "number"),
    [("mlflow", signal.SIGKILL), ("postgres", signal.SIGTERM), ("postgres", signal.SIGKILL)],
    ids=["mlflow killed", "postgres stopped", "postgres killed"],
)
def test_training_goes_on_without_mlflow_and_everything_arrives_later(
    stack, store, monkeypatch, service, number
):
    when = execution(store)
    raw = make_raw(store, when)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
    stack.stop(service, number)

    model = train(store, when, raw)
    with pytest.raises(EngineError):  # Flyte tries again
        release(store, when, model)

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
    stack.up()
    assert_whole(store, release(store, when, model))


def test_s3_that_refuses_connections_is_tried_again_and_keeps_what_it_took(stack, store):
    when = execution(store)
    raw = make_raw(store, when)
    stack.stop("s3", signal.SIGKILL)

    with pytest.raises(EngineError):
        train(store, when, raw)
    with pytest.raises(EngineError):
        store_at(store.uri).open()

    stack.up()
    shutil.rmtree(workplace(store))  # the next attempt is on another machine
    assert_whole(store, release(store, when, train(store, when, raw)))


def test_slow_s3_is_waited_for(stack, store, monkeypatch):
    with SlowProxy(stack.access.s3_port) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")

        ref = run_all(store, execution(store))

    monkeypatch.setenv("AWS_ENDPOINT_URL", stack.access.s3)
    assert_whole(store, ref)


def test_wrong_credentials_of_s3_are_the_users_mistake(store, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-wrong-key")
    boto3.setup_default_session()  # a session reads the variables once

    with pytest.raises(SettingsError, match="Check the credentials") as caught:
        store_at(store.uri).open()
    assert "planted-wrong-key" not in str(caught.value)
    monkeypatch.undo()
    boto3.setup_default_session()


def test_wrong_credentials_of_mlflow_are_the_users_mistake_and_lose_nothing(store, monkeypatch):
    when = execution(store)
    password = os.environ["MLFLOW_TRACKING_PASSWORD"]
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "planted-wrong-key")

    with pytest.raises(SettingsError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        require_access(store.tracking_uri)
    assert "planted-wrong-key" not in str(caught.value)
    # A password that is changed during a long run does not end it.
    model = train(store, when, make_raw(store, when))
    with pytest.raises(DataError, match="a retry alone does not help"):
        release(store, when, model)

    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)
    assert_whole(store, release(store, when, model))


def test_whoever_may_only_read_is_refused_by_right_and_place(stack, store, monkeypatch):
    ref = run_all(store, execution(store))
    for name, text in stack.access.variables("auditor").items():
        monkeypatch.setenv(name, text)
    boto3.setup_default_session()  # a session reads the variables once

    with pytest.raises(SettingsError, match="'auditor' lacks EDIT on the experiment 'eachprompt'"):
        require_access(store.tracking_uri)
    with pytest.raises(SettingsError, match=r"statements/forged.*AccessDenied"):
        store_at(store.uri).write_bytes(b"x", "statements/forged")
    store_at(store.uri).write_bytes(b"x", "audits/mine")
    assert_whole(store, ref)


@pytest.mark.parametrize("kept", ["objects", "statements", "audits"])
def test_pods_and_auditors_delete_nothing_that_proves_something(stack, store, monkeypatch, kept):
    run_all(store, execution(store))
    place = store_at(store.uri)
    place.write_bytes(b"x", "audits/mine")
    (name, *_) = [one for one in place.list_files() if one.startswith(f"{kept}/")]
    for who in (PODS, "auditor"):
        for variable, text in stack.access.variables(who).items():
            monkeypatch.setenv(variable, text)
        boto3.setup_default_session()

        with pytest.raises(SettingsError, match="AccessDenied"):
            place.delete_file(name)
    assert name in place.list_files()


def test_models_that_nothing_needs_are_deleted_by_gc_and_by_nobody_else(stack, store, monkeypatch):
    old = run_all(store, execution(store))
    later = Execution(id=f"{store.id[:8]}-later", started=2000.0)
    new = run_all(store, later, b"c,d\n")
    notes = collect(store.uri, read_keep("released,30d"), time.time() + 60 * 24 * 3600)
    assert old.digest in {note.digest for note in notes}

    def be(who: str) -> None:
        for variable, text in stack.access.variables(who).items():
            monkeypatch.setenv(variable, text)
        boto3.setup_default_session()  # a session reads the variables once

    for who in (PODS, "auditor"):
        be(who)
        with pytest.raises((SettingsError, DataError)):
            delete(store, notes)
    assert [] == list(object_problems(old.uri, old.digest))

    be("gc")
    delete(store, notes)

    assert not store_at(old.uri).list_files()
    assert [] == list(object_problems(new.uri, new.digest))


def test_a_full_disk_is_named_and_tried_again_elsewhere(store, tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    when = execution(store)
    raw = make_raw(store, when, b"x" * 400_000)
    shutil.rmtree(workplace(store))
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    try:
        with pytest.raises(DiskFullError, match=r"the disk of .* is full"):
            train(store, when, raw)
    finally:
        monkeypatch.undo()
        subprocess.run(["umount", "-l", disk], check=True)


def test_pipeline_and_audit_run_from_the_command_line_while_mlflow_restarts(stack, store, tmp_path):
    command = [Path(sys.executable).with_name("pyflyte"), "run"]
    options = ["--store", f"{store.uri}-pipeline"]
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run(workflow: str, *more: str, who: str = PODS) -> subprocess.Popen[str]:
        line = [*command, f"workflows/{workflow}.py", workflow, *options, *more]
        return subprocess.Popen(
            line,
            cwd=ROOT,
            env=environment | stack.access.variables(who),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(process: subprocess.Popen[str]) -> str:
        output, _ = process.communicate()
        assert process.returncode == 0, output
        for secret in (*stack.access.secrets.values(), stack.access.s3_secret_key):
            assert secret not in output
        return output

    # No other test's release is its champion.
    name = f"pipeline-{store.id[:8]}"
    settings = SAMPLE_WORLD | {"release": SAMPLE_WORLD["release"] | {"name": name}}
    pipeline = run("post_training", "--settings", json.dumps(settings))
    records = store_at(f"{store.uri}-pipeline/executions")
    while not any(name.endswith("curate.json") for name in records.list_files()):
        assert pipeline.poll() is None, pipeline.communicate()[0]
        time.sleep(1)
    stack.stop("mlflow", signal.SIGKILL)
    stack.stop("postgres", signal.SIGKILL)
    stack.up()

    assert "Released." in finish(pipeline)
    audit = run("audit", "--model", f"models:/{name}@released", who="auditor")
    assert "PROVED" in finish(audit)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    retraining = run("retrain", "--inbox", str(inbox), "--model", name)
    assert "Not retrained" in finish(retraining)


class SlowProxy(socketserver.ThreadingTCPServer):
    """Pass connections on to a port of this machine, each block of bytes a moment later."""

    daemon_threads = True  # clients keep connections open

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target = ("127.0.0.1", port)

    def __enter__(self) -> int:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self.server_address[1]

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Passing(socketserver.BaseRequestHandler):
    server: SlowProxy

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as service:
            back = threading.Thread(target=_pass_on, args=(service, self.request))
            back.start()
            _pass_on(self.request, service)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(4096):
            time.sleep(0.05)
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)
