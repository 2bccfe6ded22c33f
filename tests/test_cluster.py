"""Compiled workflows on the stack, pod by pod: S3, secrets, empty disks, preemption.

    make test-stack

Each pod runs the command that was registered, with the code that was shipped; `tests/cluster.py`
says what stands in for Flyte and what is not tested so.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import boto3
import msgpack
import psutil
import pytest
from flyteidl.admin import execution_pb2
from flyteidl.core.execution_pb2 import WorkflowExecution
from flyteidl.core.literals_pb2 import Literal, LiteralMap
from flytekit import FlyteContextManager
from flytekit.core.type_engine import TypeEngine

from containers.stack import Stack
from data_schemas.artifacts import Execution, StoreRef
from data_schemas.settings import PipelineSettings
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.retraining import demo
from tasks.store.interface import store_at
from tests.admin import Registered, recording_admin
from tests.cluster import DOMAIN, EXECUTION, PROJECT, Attempt, Cluster, Literals, PodError
from tests.packages import package_into
from tests.processes import run_process
from tests.test_guide import checkout_into
from tests.test_package import ADAPTED
from tests.test_pipeline import SAMPLE_WORLD

pytestmark = [pytest.mark.stack, pytest.mark.timeout(3600)]

NAME = "eachprompt-cluster"
RL = "tasks.stages.rl.rl"
TAKING_IN = "tasks.stages.retraining.scan_inbox"
PARTS = 2
SECRETS = {
    "MLFLOW_TRACKING_PASSWORD": "eachprompt/mlflow",
    "AWS_ACCESS_KEY_ID": "eachprompt/s3-key",
    "AWS_SECRET_ACCESS_KEY": "eachprompt/s3-secret",
}
NAMED = ",".join(f"{variable}={place}" for variable, place in SECRETS.items())
"""As they are registered."""
SMALL = SAMPLE_WORLD | {
    "grading": SAMPLE_WORLD["grading"] | {"max_problems": 60},
    "rl_one": SAMPLE_WORLD["rl_one"] | {"steps": 3},
    "rl_two": SAMPLE_WORLD["rl_two"] | {"steps": 3},
    "evaluation": {"samples": 1},
    "release": SAMPLE_WORLD["release"] | {"name": NAME},
}


class Preemptions:
    """Signals the first attempt at each phase of RL once a step of it is in S3."""

    def __init__(self, store: str, numbers: list[int]) -> None:
        self._states = store_at(f"{store}/state")
        self._numbers = numbers

    def __call__(self, attempt: Attempt) -> bool:
        if attempt.task != RL or attempt.number or not self._numbers:
            return False
        number = self._numbers.pop(0)
        before = self._steps()
        while not self._steps() - before:
            if psutil.Process(attempt.pid).status() == psutil.STATUS_ZOMBIE:  # it was faster
                return False
            time.sleep(0.2)
        # A pod that is stopped gets SIGTERM in its first process, one that is lost ends whole.
        (os.kill if number == signal.SIGTERM else os.killpg)(attempt.pid, number)
        return number == signal.SIGTERM

    def _steps(self) -> set[str]:
        return {name for name in self._states.list_files() if "/steps/" in name}


@pytest.fixture(scope="module")
def store(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The prefix of an empty store, which this process may read."""
    stack.up()
    with pytest.MonkeyPatch.context() as patch:
        for name, text in stack.access.variables().items():
            patch.setenv(name, text)
        boto3.setup_default_session()  # a session reads the variables once
        yield f"s3://eachprompt/{tmp_path_factory.mktemp('cluster').name}-{time.time_ns()}"


@pytest.fixture(scope="module")
def cluster(
    stack: Stack, store: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster whose pods get credentials as secrets only."""
    find_signer()  # creates the key, which a pod does not
    folder = tmp_path_factory.mktemp("cluster")
    package = package_into(
        folder, {"EACHPROMPT_SECRETS": NAMED, "EACHPROMPT_CURATION_TASKS": f"{PARTS}"}
    )
    made = cluster_of(stack, package, folder, f"{store}-flyte", {})
    made.watch = Preemptions(store, [signal.SIGTERM, signal.SIGKILL])
    yield made
    made.close()


def cluster_of(
    stack: Stack, package: Path, folder: Path, bucket: str, variables: dict[str, str]
) -> Cluster:
    """A cluster whose pods are the identity `pods`, by secrets and by these variables."""
    access = stack.access.variables()
    return Cluster(
        package,
        folder,
        bucket=bucket,
        variables={name: text for name, text in access.items() if name not in SECRETS}
        | {
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": "120",  # a loaded machine is no outage
            "EACHPROMPT_SIGNING_KEY": os.environ["EACHPROMPT_SIGNING_KEY"],
        }
        | variables,
        secrets={
            (place.partition("/")[0], place.partition("/")[2]): access[name]
            for name, place in SECRETS.items()
        },
    )


@pytest.fixture(scope="module")
def released(cluster: Cluster, store: str) -> Literals:
    """What the pipeline returned, whose two phases of RL were preempted."""
    settings = PipelineSettings.model_validate(SMALL)
    texts = {"store": store, "sources": "", "base_model": "", "release": ""}
    given = {"settings": literal(settings)} | {name: literal(text) for name, text in texts.items()}
    return cluster.run("workflows.post_training.post_training", given)


def literal(value: object) -> Literal:
    """Encode a value as an input of a task."""
    context, kind = FlyteContextManager.current_context(), type(value)
    wanted = TypeEngine.to_literal_type(kind)
    return TypeEngine.to_literal(context, value, kind, wanted).to_flyte_idl()


def digest(model: Literal) -> str:
    return msgpack.unpackb(model.scalar.binary.value)["digest"]


def text(output: Literal) -> str:
    return output.scalar.primitive.string_value


def test_the_compiled_pipeline_releases_a_model_pod_by_pod(cluster, released, store, stack):
    version = Lookup(stack.access.mlflow).version(f"models:/{NAME}@released")

    assert digest(released["model"]) == version.tags["sha256"]
    assert text(released["page"]).startswith(f"{store}/reports/")
    endings = [ending for task, ending in cluster.attempts if task == RL]
    assert ["deleted", "succeeded", f"exit code {-signal.SIGKILL}", "succeeded"] == endings
    others = {ending for task, ending in cluster.attempts if task != RL}
    assert {"succeeded"} == others


def test_a_preempted_phase_ends_in_the_model_of_an_undisturbed_one(
    cluster, released, store, stack, tmp_path
):
    other = f"{store}-undisturbed"
    copy(store, other, tmp_path)
    id_of_store = store_at(other).open()
    elsewhere = StoreRef(uri=other, id=id_of_store, tracking_uri=stack.access.mlflow)
    execution = literal(Execution(id="undisturbed", started=1000.0))
    flyte = store_at(f"{cluster.bucket}/{EXECUTION}")
    phases = {}
    for name in flyte.list_files():
        node, _, file = name.rpartition("/1/")
        if file == "out/outputs.pb":  # of a second attempt
            phases[node] = parsed(flyte.read_bytes(name))["model"]
    assert 2 == len(phases)

    for number, (node, model) in enumerate(sorted(phases.items())):
        given = parsed(flyte.read_bytes(f"{node}/0/inputs.pb"))
        given |= {"store": literal(elsewhere), "execution": execution}
        again = cluster.task(RL, given, f"undisturbed-{number}")
        assert digest(model) == digest(again["model"])


def test_a_map_task_over_parts_curates_the_set_of_one_pod(cluster, released):
    flyte = store_at(f"{cluster.bucket}/{EXECUTION}")
    (name,) = [
        name
        for name in flyte.list_files()
        if name.endswith("/0/inputs.pb") and "parts" in parsed(flyte.read_bytes(name))
    ]
    given = parsed(flyte.read_bytes(name))
    assert PARTS == len(given["parts"].collection.literals)
    assert PARTS == sum(".map_curate_part_" in task for task, _ in cluster.attempts)
    curated = parsed(flyte.read_bytes(name.replace("inputs.pb", "out/outputs.pb")))["o0"]

    given["parts"].collection.ClearField("literals")
    alone = cluster.task("tasks.stages.curation.curate", given, "alone")["o0"]
    assert digest(curated) == digest(alone)


def test_no_secret_is_in_what_pods_wrote_or_logged(cluster, released, store, stack):
    # The access key of an identity is its name, which MLflow has as the user of a run.
    values = {key: value for key, value in cluster.secrets.items() if key[1] != "s3-key"}
    assert {"mlflow", "s3-secret"} == {key for _, key in values}
    secrets = [value.encode() for value in values.values()]
    written = {"pods.log": (cluster.folder / "pods.log").read_bytes()}
    client = connect(stack.access.mlflow)
    experiment = client.get_experiment_by_name("eachprompt")
    runs = client.search_runs([experiment.experiment_id])
    written["mlflow"] = str([run.to_dictionary() for run in runs]).encode()
    for prefix in (store, cluster.bucket):
        place = store_at(prefix)
        written |= {f"{prefix}/{name}": place.read_bytes(name) for name in place.list_files()}

    assert any(name.endswith("deck.html") for name in written)
    assert [] == [name for name, found in written.items() if any(key in found for key in secrets)]


@dataclass
class Nights:
    """A cluster of which Flyte's admin knows, and what people heard of it."""

    cluster: Cluster
    admin: Registered
    heard: list[str]

    def run(self, name: str, recovers: str = "") -> Literals:
        """Run what was started as an execution of this name."""
        (request,) = self.admin.started
        plan = self.admin.plans[request.spec.launch_plan.name]
        defaults = plan.spec.default_inputs.parameters
        given = {key: one.default for key, one in defaults.items()} | dict(request.inputs.literals)
        return self.cluster.run(plan.spec.workflow_id.name, given, name, recovers)

    def status(self, name: str) -> str:
        """What MLflow says of an execution."""
        client = connect(self.cluster.variables["MLFLOW_TRACKING_URI"])
        experiment = client.get_experiment_by_name("eachprompt").experiment_id
        runs = client.search_runs(
            [experiment], f"tags.`flyte.execution` = '{PROJECT}/{DOMAIN}/{name}'"
        )
        found = [run.info.status for run in runs if "eachprompt.stage" not in run.data.tags]
        return found[0] if found else ""


@pytest.fixture(scope="module")
def nights(released: Literals, store: str, stack: Stack, tmp_path_factory) -> Iterator[Nights]:
    """Nights of a plan that was started through Flyte's gRPC service, which pods may ask."""
    folder = tmp_path_factory.mktemp("nights")
    demo.drop(demo.GOOD, f"{store}/inbox")
    heard: list[str] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append(json.loads(body)["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    (folder / "registered").mkdir()
    with (
        HTTPServer(("127.0.0.1", 0), Chat) as chat,
        recording_admin(folder / "registered", ADAPTED) as admin,
    ):
        threading.Thread(target=chat.serve_forever, args=(0.01,), daemon=True).start()
        config = folder / "flyte.yaml"
        config.write_text(f"admin:\n  endpoint: {admin.endpoint}\n  insecure: true\n")
        pyflyte = Path(sys.executable).with_name("pyflyte")
        command = [pyflyte, "--config", config, "run", "--remote", "--copy", "all"]
        command += ["--project", PROJECT, "--domain", DOMAIN]
        command += ["workflows/launch_plans.py", "nightly_retrain", "--settings"]
        command += [json.dumps({"parent": "nightly_demo", "release": {"name": NAME}})]
        # One step of RL alone changes too little to be refused.
        command += ["--demonstrations", "off", "--model", NAME]
        command += ["--store", store, "--inbox", f"{store}/inbox"]
        checkout = checkout_into(folder / "checkout")
        run_process(
            command,
            cwd=checkout,
            variables={"HOME": str(folder), "PYTHONPATH": str(checkout)}
            | {"EACHPROMPT_SECRETS": NAMED, "EACHPROMPT_SMOKE": "1"},
        )
        own = {
            "EACHPROMPT_WEBHOOK": f"http://127.0.0.1:{chat.server_port}",
            "FLYTE_PLATFORM_URL": admin.endpoint,
            "FLYTE_PLATFORM_INSECURE": "true",
        }
        made = cluster_of(stack, admin.folder, folder, f"{store}-nights", own)
        yield Nights(made, admin, heard)
        made.close()
        chat.shutdown()


def test_people_hear_of_a_night_that_fails_of_its_recovery_that_fails_and_of_the_next(
    nights, store
):
    def lose(attempt: Attempt) -> bool:
        if attempt.task == TAKING_IN:
            pod = psutil.Process(attempt.pid)
            while "RUNNING" != nights.status(nights.cluster.execution):
                assert psutil.STATUS_ZOMBIE != pod.status()
            os.killpg(attempt.pid, signal.SIGKILL)
        return False

    nights.cluster.watch = lose
    with pytest.raises(PodError, match="scan_inbox: no attempt is left"):
        nights.run("night1")

    (first,) = nights.heard
    assert first.startswith(f"[failed] {PROJECT}/{DOMAIN}/night1: {TAKING_IN}: no attempt is left")
    assert first.endswith("--recover night1")
    assert "FAILED" == nights.status("night1")
    before = len(nights.cluster.attempts)

    with pytest.raises(PodError, match="scan_inbox: no attempt is left"):
        nights.run("night2", recovers="night1")

    recovered = {task for task, end in nights.cluster.attempts[before:] if end == "recovered"}
    assert {"tasks.stages.opening.open_night", "tasks.stages.failure.tell_failure"} <= recovered
    assert [first] == nights.heard  # Flyte recovers the node that tells it
    assert "RUNNING" == nights.status("night2")

    ended = nights.admin.records["night2"] = execution_pb2.Execution()
    ended.closure.phase = WorkflowExecution.FAILED
    ended.closure.error.message = "RetriesExhausted: the pod is gone"
    nights.cluster.watch = lambda attempt: False
    message = text(nights.run("night3")["o0"])

    _, second, third = nights.heard
    assert second.startswith(f"[failed] {PROJECT}/{DOMAIN}/night2 (retrain): RetriesExhausted")
    assert second.endswith("--recover night2")
    assert third.startswith("[promoted] retraining night3-")
    assert message.startswith("Promoted: ")
    assert ["FAILED", "FINISHED"] == [nights.status(name) for name in ("night2", "night3")]


def parsed(payload: bytes) -> Literals:
    found = LiteralMap()
    found.ParseFromString(payload)
    return dict(found.literals)


def copy(source: str, target: str, folder: Path) -> None:
    """Copy a store without the states of its phases."""
    read, write = store_at(source), store_at(target)
    for name in read.list_files():
        if not name.startswith(("state/", "leases/", "spool/")):
            read.download_file(folder / "file", name)
            write.upload_file(folder / "file", name)
