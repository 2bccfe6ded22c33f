"""A stage as a pod starts it: the container's own command, its inputs and its verdict on errors."""

import os
from pathlib import Path

import pytest
from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flyteidl.core.literals_pb2 import LiteralMap
from flytekit import FlyteContextManager
from flytekit.core.type_engine import TypeEngine

from data_schemas.presets import NIGHTLY
from tests.pod_server import PodServer

ROOT = Path(__file__).parents[2]
OPENING = "tasks.stages.opening"


@pytest.fixture(scope="module")
def server():
    """What starts the pods of this file, which share one import of the code."""
    started = PodServer(ROOT, os.environ | {"PYTHONPATH": str(ROOT)}, [OPENING, "mlflow"])
    yield started
    started.close()


def start(server: PodServer, folder: Path, name: str, inputs: dict[str, object]) -> Path:
    """Run the command of a registered task and return the folder of its outputs."""
    context = FlyteContextManager.current_context()
    literals = {
        key: TypeEngine.to_literal(
            context, value, type(value), TypeEngine.to_literal_type(type(value))
        ).to_flyte_idl()
        for key, value in inputs.items()
    }
    (folder / "inputs.pb").write_bytes(LiteralMap(literals=literals).SerializeToString())
    args = ["pyflyte-execute", "--inputs", f"{folder}/inputs.pb"]
    args += ["--output-prefix", f"{folder}/out", "--raw-output-data-prefix", f"{folder}/raw"]
    args += ["--checkpoint-path", f"{folder}/checkpoint", "--prev-checkpoint", '""']
    args += ["--resolver", "flytekit.core.python_auto_container.default_task_resolver", "--"]
    args += ["task-module", OPENING, "task-name", name]
    environment = os.environ | {"HOME": str(folder), "PYTHONPATH": str(ROOT)}
    log = folder / "log"
    pid = server.start(args=args, environment=environment, folder=folder, log=log)
    assert server.wait(pid) == 0, log.read_text()[-3000:]
    return folder / "out"


def error_of(out: Path) -> ContainerError:
    document = ErrorDocument()
    document.ParseFromString((out / "error.pb").read_bytes())
    return document.error


@pytest.mark.slow
def test_a_pod_opens_the_store_and_returns_its_location(server, tmp_path):
    inputs = {"store": str(tmp_path / "store"), "workflow": "post_training"}

    out = start(server, tmp_path, "open_store", inputs)

    outputs = LiteralMap()
    outputs.ParseFromString((out / "outputs.pb").read_bytes())
    assert {"store", "execution"} == set(outputs.literals)
    assert (tmp_path / "store" / "store.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "kind", "message"),
    [
        ("s3://bucket/store", ContainerError.RECOVERABLE, "EngineError"),
        ("/dev/null/store", ContainerError.NON_RECOVERABLE, "/dev/null"),
    ],
    ids=["server away", "user's mistake"],
)
def test_flyte_retries_only_retryable_errors(server, tmp_path, monkeypatch, store, kind, message):
    # In a pod, engines that only the images of other stages hold are no error.
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "run")
    # Nothing listens there.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("EACHPROMPT_SIGNING_KEY")

    out = start(
        server,
        tmp_path,
        "open_night",
        {"settings": NIGHTLY, "from_inbox": "", "model": "", "store": store},
    )

    error = error_of(out)
    assert kind == error.kind
    assert message in error.message
