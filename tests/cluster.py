"""A small propeller: walks compiled workflows and runs the command of each task's container.

It reads the protobufs of `pyflyte package`, resolves bindings into inputs.pb on S3, fills the
templates of a container's command, and reads outputs.pb or error.pb. A recoverable error or a
killed pod is tried again, as often as propeller would, on an empty disk; after a deleted pod at
once, in its grace, and what that pod writes is not read. When an execution fails, it runs the node
for that; a recovered one runs what did not succeed before. It knows nothing of scheduling, images,
quotas, caches, Flyte's console, or how a webhook delivers secrets.
"""

import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgpack
from flyteidl.admin.task_pb2 import TaskSpec
from flyteidl.admin.workflow_pb2 import WorkflowSpec
from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flyteidl.core.literals_pb2 import BindingData, Literal, LiteralMap
from flyteidl.core.types_pb2 import SimpleType
from flyteidl.core.workflow_pb2 import Node, WorkflowTemplate
from google.protobuf.json_format import MessageToDict

from tasks.platform.literals import MESSAGEPACK
from tasks.platform.log_lines import FIELDS
from tasks.store.interface import store_at
from tests.pod_server import PodServer

ROOT = Path(__file__).parents[1]
PROJECT, DOMAIN, EXECUTION = "eachprompt", "development", "f0123456789abcdef"
Literals = dict[str, Literal]


SYSTEM_RETRIES = 3
"""propeller's `max-node-retries-system-failures` by default."""


class End(StrEnum):
    """How an attempt ended that may be tried again."""

    RECOVERABLE = "recoverable"
    """The task said so: one of its own retries."""
    LOST = "lost"
    """Deleted, killed, or gone with its node."""


def tries_again(ends: Sequence[End], retries: int, kind: str = "python-task") -> bool:
    """Decide as propeller does whether there is another attempt after these.

    A lost pod counts against a budget of the platform, whatever the task's retries are; a lost
    worker of a PyTorchJob is a failure of the task.
    """
    lost = 0 if kind == "pytorch" else sum(end is End.LOST for end in ends)
    return lost <= SYSTEM_RETRIES and len(ends) - lost <= retries


def is_interruptible(ends: Sequence[End]) -> bool:
    """Whether the attempt after these may run on a node that can be taken away: not the last."""
    return sum(end is End.LOST for end in ends) < SYSTEM_RETRIES


class PodError(Exception):
    """A task ended in an error that no attempt is left for; the message is that of error.pb."""


@dataclass(frozen=True)
class Attempt:
    """One pod that is running."""

    task: str
    node: str
    number: int
    pid: int


@dataclass
class Cluster:
    """A package of `pyflyte package`, and what its pods have of the world."""

    package: Path
    folder: Path
    bucket: str
    """Prefix of inputs, outputs and raw data, as propeller's `rawoutput-prefix`."""
    variables: Mapping[str, str]
    """Variables of every pod, as a pod template sets them."""
    secrets: Mapping[tuple[str, str], str]
    """Value by group and key, delivered as the webhook delivers variables."""
    watch: Callable[[Attempt], bool] = lambda attempt: False
    """Called while a pod runs; may signal it, and says whether it deleted it."""
    execution: str = EXECUTION
    """Name of the one that runs."""
    attempts: list[tuple[str, str]] = field(default_factory=list)
    """(task, how its pod ended, or that it was recovered), in order."""
    _finished: dict[str, dict[str, Literals]] = field(default_factory=dict)
    """Outputs by node of each execution."""
    _recovered: dict[str, Literals] = field(default_factory=dict)
    """Outputs of nodes that are not run again."""

    def __post_init__(self) -> None:
        self._code = self.folder / "code"
        with tarfile.open(next(self.package.glob("fast*.tar.gz"))) as bundle:
            bundle.extractall(self._code, filter="data")
        self._tasks = _read(self.package, "1", TaskSpec)
        modules = sorted({name.rpartition(".")[0] for name in self._tasks})
        # The code that was shipped, not this checkout; it reads some variables as it is imported.
        registered = {k: v for task in self._tasks.values() for k, v in _variables(task.template)}
        environment = os.environ | registered
        environment |= {"PYTHONPATH": str(self._code), "HOME": str(self.folder)}
        environment["FLYTE_SDK_LOGGING_LEVEL"] = "40"
        environment[FIELDS["execution"]] = self.execution  # it imports what pods import, as they do
        self._server = PodServer(self._code, environment, modules)

    def close(self) -> None:
        """End the server of pods."""
        self._server.close()

    def run(
        self, workflow: str, inputs: Literals, execution: str = EXECUTION, recovers: str = ""
    ) -> Literals:
        """Execute a workflow.

        Args:
            workflow: its name.
            inputs: of it.
            execution: its name.
            recovers: an earlier execution, whose nodes that succeeded are not run again: as in
                Flyte its failure node is one of them.
        """
        self.execution, self._recovered = execution, self._finished.get(recovers, {})
        spec = _read(self.package, "2", WorkflowSpec)[workflow]
        below = {template.id.name: template for template in spec.sub_workflows}
        path = workflow.rpartition(".")[2]
        try:
            return self._workflow(spec.template, below, inputs, path)
        except PodError as error:
            if spec.template.HasField("failure_node"):
                node = spec.template.failure_node
                given = {one.var: _resolve(one.binding, {"": inputs}) for one in node.inputs}
                optional = given["err"].scalar.union
                optional.value.scalar.error.message = str(error)
                optional.type.simple, optional.type.structure.tag = SimpleType.ERROR, "FlyteError"
                self.task(node.task_node.reference_id.name, given, f"{path}/{node.id}")
            raise

    def _workflow(
        self,
        template: WorkflowTemplate,
        below: Mapping[str, WorkflowTemplate],
        inputs: Literals,
        path: str,
    ) -> Literals:
        made = {"": inputs}
        for node in template.nodes:
            assert set(node.upstream_node_ids) <= made.keys(), f"{path}/{node.id} comes too early"
            made[node.id] = self._node(node, below, made, f"{path}/{node.id}")
        return {binding.var: _resolve(binding.binding, made) for binding in template.outputs}

    def _node(
        self,
        node: Node,
        below: Mapping[str, WorkflowTemplate],
        made: Mapping[str, Literals],
        path: str,
    ) -> Literals:
        given = {binding.var: _resolve(binding.binding, made) for binding in node.inputs}
        kind = node.WhichOneof("target")
        if kind == "task_node":
            return self.task(node.task_node.reference_id.name, given, path)
        if kind == "array_node":
            return self._array(node.array_node.node.task_node.reference_id.name, given, path)
        if kind == "workflow_node":
            template = below[node.workflow_node.sub_workflow_ref.name]
            return self._workflow(template, below, given, path)
        blocks = node.branch_node.if_else
        for block in (blocks.case, *blocks.other):
            comparison = block.condition.comparison
            asked = given[comparison.left_value.var].scalar.primitive
            if asked == comparison.right_value.primitive:
                chosen = block.then_node
                break
        else:
            chosen = blocks.else_node
        return self._node(chosen, below, made | {"": made[""] | given}, f"{path}/{chosen.id}")

    def _array(self, name: str, inputs: Literals, path: str) -> Literals:
        """Run a map task: every pod gets all inputs, and its number as a variable."""
        arguments = _arguments(self._tasks[name].template)
        bound = set(arguments[arguments.index("vars") + 1].split(","))
        (mapped,) = inputs.keys() - bound
        outputs: dict[str, Literal] = {}
        for number in range(len(inputs[mapped].collection.literals)):
            for key, one in self.task(name, inputs, f"{path}/{number}", number).items():
                outputs.setdefault(key, Literal()).collection.literals.append(one)
        return outputs

    def task(self, name: str, inputs: Literals, path: str, index: int = 0) -> Literals:
        """Run the pods of one task until one succeeds.

        Args:
            name: of the task.
            inputs: of the task.
            path: of the node.
            index: of the pod in a map task.

        Raises:
            PodError: the error is not recoverable, or no attempt is left.
        """
        template = self._tasks[name].template
        finished = self._finished.setdefault(self.execution, {})
        if path in self._recovered:
            self.attempts.append((name, "recovered"))
            finished[path] = self._recovered[path]
            return finished[path]
        ends: list[End] = []
        stopping: list[int] = []
        while tries_again(ends, template.metadata.retries.retries, template.type):
            number = len(ends)
            place = store_at(f"{self.bucket}/{self.execution}/{path}/{number}")
            place.write_bytes(LiteralMap(literals=inputs).SerializeToString(), "inputs.pb")
            pod = self._start(name, path, number, place.uri, index)
            if self.watch(Attempt(name, path, number, pod)):
                self.attempts.append((name, "deleted"))
                ends.append(End.LOST)
                stopping.append(pod)
                continue
            code, *_ = [self._server.wait(one) for one in (pod, *stopping)]
            stopping.clear()
            written = {file for file in place.list_files() if file.count("/") == 1}
            if "out/outputs.pb" in written:
                self.attempts.append((name, "succeeded"))
                made = _parse(LiteralMap, place.read_bytes("out/outputs.pb")).literals
                finished[path] = dict(made)
                return finished[path]
            if "out/error.pb" in written:
                error = _parse(ErrorDocument, place.read_bytes("out/error.pb")).error
                self.attempts.append((name, ContainerError.Kind.Name(error.kind)))
                if error.kind != ContainerError.RECOVERABLE:
                    raise PodError(error.message)
                ends.append(End.RECOVERABLE)
            else:
                self.attempts.append((name, f"exit code {code}"))
                ends.append(End.LOST)
        raise PodError(f"{name}: no attempt is left")

    def _start(self, name: str, path: str, number: int, place: str, index: int) -> int:
        template = self._tasks[name].template
        disk = self.folder / "disks" / self.execution / f"{path.replace('/', '-')}-{number}"
        disk.mkdir(parents=True)
        before = f"{place.rpartition('/')[0]}/{number - 1}/checkpoint" if number else '""'
        values = {
            "input": f"{place}/inputs.pb",
            "outputPrefix": f"{place}/out",
            "rawOutputDataPrefix": f"{place}/raw",
            "checkpointOutputPrefix": f"{place}/checkpoint",
            "prevCheckpointPrefix": before,
        }
        command = _arguments(template)
        command = command[command.index("--") + 1 :]  # the code is there already
        for key, value in values.items():
            command = [word.replace("{{." + key + "}}", value) for word in command]
        environment = self._environment(name, disk) | _array_variables(index)
        return self._server.start(command, environment, disk, self.folder / "pods.log")

    def _environment(self, name: str, disk: Path) -> dict[str, str]:
        template = self._tasks[name].template
        ids = {"PROJECT": PROJECT, "DOMAIN": DOMAIN, "ID": self.execution}
        flyte = {f"FLYTE_INTERNAL_EXECUTION_{part}": value for part, value in ids.items()}
        flyte |= {"FLYTE_INTERNAL_TASK_NAME": name}
        secrets = {
            secret.env_var: self.secrets[secret.group, secret.key]
            for secret in template.security_context.secrets
            if (secret.group, secret.key) in self.secrets  # a missing one is an unset variable
        }
        own = dict(_variables(template))
        places = {"HOME": str(disk), "TMPDIR": str(disk), "PATH": os.environ["PATH"]}
        places["PYTHONPATH"] = str(self._code)
        return {**flyte, **self.variables, **secrets, **own, **places}


def _array_variables(index: int) -> dict[str, str]:
    variable = "FLYTE_K8S_ARRAY_INDEX"
    return {"BATCH_JOB_ARRAY_INDEX_VAR_NAME": variable, variable: str(index)}


def _read(package: Path, suffix: str, message: type) -> dict[str, Any]:
    specs = [_parse(message, path.read_bytes()) for path in package.glob(f"*_{suffix}.pb")]
    return {spec.template.id.name: spec for spec in specs}


def _parse(message: type, payload: bytes) -> Any:
    parsed = message()
    parsed.ParseFromString(payload)
    return parsed


def _arguments(template: Any) -> list[str]:
    if template.HasField("k8s_pod"):
        return list(MessageToDict(template.k8s_pod.pod_spec)["containers"][0]["args"])
    return list(template.container.args)


def _variables(template: Any) -> list[tuple[str, str]]:
    if template.HasField("k8s_pod"):
        container = MessageToDict(template.k8s_pod.pod_spec)["containers"][0]
        return [(one["name"], one["value"]) for one in container.get("env", [])]
    return [(one.key, one.value) for one in template.container.env]


def _resolve(binding: BindingData, made: Mapping[str, Literals]) -> Literal:
    kind = binding.WhichOneof("value")
    if kind == "scalar":
        return Literal(scalar=binding.scalar)
    if kind == "collection":
        parts = [_resolve(part, made) for part in binding.collection.bindings]
        literal = Literal()
        literal.collection.literals.extend(parts)
        return literal
    assert kind == "promise", f"a binding by {kind}"
    found = made[binding.promise.node_id][binding.promise.var]
    for step in binding.promise.attr_path:
        found = _attribute(found, step.string_value)
    return found


def _attribute(model: Literal, name: str) -> Literal:
    """Decode a model, choose an attribute and encode it, as propeller does."""
    assert model.scalar.binary.tag == MESSAGEPACK
    chosen = msgpack.unpackb(model.scalar.binary.value, strict_map_key=False)[name]
    literal = Literal()
    literal.scalar.binary.tag = MESSAGEPACK
    literal.scalar.binary.value = msgpack.packb(chosen)
    return literal
