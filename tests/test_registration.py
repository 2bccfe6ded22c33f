"""Tasks that a task makes in its pod are those of the registration (futures.pb)."""

import os
import re
import sys

import pytest
from flyteidl.admin.workflow_pb2 import WorkflowSpec
from flyteidl.core.dynamic_job_pb2 import DynamicJobSpec
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate
from flytekit.core.context_manager import FlyteContext
from flytekit.core.type_engine import TypeEngine

from data_schemas.artifacts import (
    CandidateRef,
    CheckpointRef,
    DatasetRef,
    Execution,
    StoreRef,
)
from data_schemas.settings import EvaluationSettings
from tasks.platform.source import commit
from tasks.stages.evaluation import evaluate_all
from tests.compiler import Platform, compile_workflow
from tests.packages import ROOT, pod
from tests.processes import run_process

pytestmark = pytest.mark.slow  # two starts of Python for each; test_package.py is of every day
VARIABLES = {
    "EACHPROMPT_IMAGE_CPU": "registry.example/cpu@sha256:" + 64 * "a",
    "EACHPROMPT_IMAGE_ROLLOUT": "registry.example/rollout@sha256:" + 64 * "b",
    "EACHPROMPT_POD_TEMPLATE_CPU": "own-cpu",
    "EACHPROMPT_POD_TEMPLATE_ROLLOUT": "own-rollout",
    "EACHPROMPT_SECRETS": "AWS_SECRET_ACCESS_KEY=eachprompt/s3",
}
SERIALISE = """
from collections import OrderedDict
import sys
from pathlib import Path
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable
from tasks.stages import evaluation as task
settings = SerializationSettings(
    project="p", domain="d", version="v", env={},
    image_config=ImageConfig(default_image=Image("default", "registry.example/flyte", "1")),
)
for name in ("evaluate_all", "evaluate"):
    message = get_serializable(OrderedDict(), settings, getattr(task, name)).to_flyte_idl()
    (Path(sys.argv[1]) / name).write_bytes(message.template.SerializeToString())
(Path(sys.argv[1]) / "context").write_text(settings.serialized_context)
"""
MODEL = CheckpointRef(uri="s3://b/model", digest="0", statement="1")


def process(arguments, variables):
    """Run Python without any variable of this project but the given ones."""
    own = {name: one for name, one in os.environ.items() if not name.startswith("EACHPROMPT_")}
    run_process(
        [sys.executable, *arguments], cwd=ROOT, env=own | {"PYTHONPATH": str(ROOT)} | variables
    )


def read(path):
    """Read the template of a task."""
    template = TaskTemplate()
    template.ParseFromString(path.read_bytes())
    return template


def inputs():
    """Inputs of `evaluate_all`."""
    values = {
        "settings": EvaluationSettings(),
        "models": [CandidateRef(name="one", address="s3://b/model", model=MODEL)],
        "base": MODEL,
        "curated": DatasetRef(uri="s3://b/rows", digest="2"),
        "store": StoreRef(uri="s3://b", id="3", tracking_uri="http://mlflow"),
        "execution": Execution(id="4", workflow="evaluate", started=0.0),
    }
    context = FlyteContext.current_context()
    kinds, types = evaluate_all.python_interface.inputs, evaluate_all.interface.inputs
    return LiteralMap(
        literals={
            name: TypeEngine.to_literal(
                context, value, kinds[name], types[name].type
            ).to_flyte_idl()
            for name, value in values.items()
        }
    )


@pytest.fixture(
    scope="module",
    params=[pytest.param({}, id="whole"), pytest.param({"EACHPROMPT_SMOKE": "1"}, id="smoke")],
)
def made(request, tmp_path_factory):
    """Templates: of the registered task `evaluate`, and of the one made in a pod; the job."""
    folder = tmp_path_factory.mktemp("pod")
    process(["-c", SERIALISE, folder], VARIABLES | request.param)
    dynamic, expected = (read(folder / name) for name in ("evaluate_all", "evaluate"))
    (folder / "inputs.pb").write_bytes(inputs().SerializeToString())
    arguments = list(pod(dynamic)["args"])
    values = {
        "{{.input}}": str(folder / "inputs.pb"),
        "{{.outputPrefix}}": str(folder / "out"),
        "{{.rawOutputDataPrefix}}": str(folder / "raw"),
        "{{.checkpointOutputPrefix}}": str(folder / "checkpoint"),
        "{{.prevCheckpointPrefix}}": '""',
    }
    command = [values.get(one, one) for one in arguments]
    entrypoint = "from flytekit.bin.entrypoint import execute_task_cmd; execute_task_cmd()"
    execution = {
        "FLYTE_INTERNAL_EXECUTION_ID": "run",
        "FLYTE_INTERNAL_EXECUTION_PROJECT": "p",
        "FLYTE_INTERNAL_EXECUTION_DOMAIN": "d",
        "_F_SS_C": (folder / "context").read_text(),
    }
    process(["-c", entrypoint, *command[1:]], variables_of(dynamic) | execution)
    job = DynamicJobSpec()
    job.ParseFromString((folder / "out" / "futures.pb").read_bytes())
    return expected, next(one for one in job.tasks if one.id.name.endswith(".evaluate")), job


def variables_of(template):
    """The environment of a container."""
    if template.HasField("k8s_pod"):
        (container,) = template.k8s_pod.pod_spec["containers"]
        return {one["name"]: one["value"] for one in container["env"]}
    return {one.key: one.value for one in template.container.env}


def test_a_task_made_in_a_pod_is_the_registered_one(made):
    registered, own, _ = made

    assert pod(registered) == pod(own)
    assert registered.security_context == own.security_context
    assert registered.metadata.pod_template_name == own.metadata.pod_template_name
    assert registered.extended_resources == own.extended_resources
    assert variables_of(registered).items() >= VARIABLES.items()
    assert own.security_context.secrets


def test_a_registered_task_carries_the_commit_of_the_checkout(made):
    for task in made[:2]:
        carried = variables_of(task).get("EACHPROMPT_COMMIT", "")
        assert len(commit()) == len(carried)  # somebody may commit meanwhile
        assert re.fullmatch("(?:[0-9a-f]{40})?", carried)


def test_what_a_pod_made_compiles(made):
    _, _, job = made
    spec = WorkflowSpec()
    spec.template.nodes.extend(job.nodes)
    spec.template.outputs.extend(job.outputs)

    assert [] == [
        one
        for one in compile_workflow(spec, {one.id.name: one for one in job.tasks}, Platform(), {})
        if "end-node: there is no input" not in one  # outputs of a dynamic task name no interface
    ]
