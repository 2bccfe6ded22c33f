"""A Flyte admin that records what is registered and started: flyteidl's services over real gRPC.

It compiles what arrives and refuses what a cluster would refuse (`tests.compiler`), also another
entity under a version that was used. It executes nothing.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from flyteidl.admin import execution_pb2, launch_plan_pb2, task_pb2, workflow_pb2
from flyteidl.core import execution_pb2 as core_execution
from flyteidl.core import identifier_pb2
from flyteidl.service import admin_pb2_grpc, dataproxy_pb2, dataproxy_pb2_grpc

from tests.compiler import (
    Interface,
    Platform,
    check_execution,
    check_resources,
    compile_plan,
    compile_workflow,
    interface_of,
)

FRESH = Platform(limits={"cpu": "2", "memory": "1Gi"})
"""The settings of an installation that nobody adapted."""
BUNDLE = "s3://flyte/metadata/fast.tar.gz"
"""Where pods would find the shipped code."""


@dataclass
class Registered:
    """Everything that was registered, by name."""

    folder: Path
    """Folder of the messages, in files as `pyflyte package` writes them, and the shipped code."""
    endpoint: str = ""
    ids: list[Any] = field(default_factory=list)
    """Project, domain, name and version, in the order of registration."""
    active: list[str] = field(default_factory=list)
    """Launch plans that were activated."""
    started: list[Any] = field(default_factory=list)
    """Requests of executions."""
    records: dict[str, Any] = field(default_factory=dict)
    """What it says of an execution, by name."""
    refused: dict[str, list[str]] = field(default_factory=dict)
    """What a cluster would refuse, and why, of what may be registered nevertheless."""
    tasks: dict[str, Any] = field(default_factory=dict)
    workflows: dict[str, Any] = field(default_factory=dict)
    plans: dict[str, Any] = field(default_factory=dict)

    def write(self, name: str, suffix: str, message: Any) -> None:
        (self.folder / f"{len(self.ids):03}_{name}_{suffix}.pb").write_bytes(
            message.SerializeToString()
        )

    @property
    def interfaces(self) -> Mapping[str, Interface]:
        """Inputs of the launch plans: those of their workflows."""
        return {
            name: interface_of(self.workflows[plan.spec.workflow_id.name].template)
            for name, plan in self.plans.items()
        }


class _Admin(admin_pb2_grpc.AdminServiceServicer, dataproxy_pb2_grpc.DataProxyServiceServicer):
    def __init__(
        self, registered: Registered, sink: str, platform: Platform, exceptions: Sequence[str]
    ) -> None:
        self._registered = registered
        self._exceptions = exceptions
        self._sink = sink
        self._platform = platform
        self._lock = threading.Lock()
        self._made: dict[bytes, bytes] = {}

    def CreateUploadLocation(self, request, context):
        return dataproxy_pb2.CreateUploadLocationResponse(
            signed_url=f"{self._sink}/fast.tar.gz", native_url=BUNDLE
        )

    def CreateTask(self, request, context):
        self._refuse(context, check_resources(request.spec.template, self._platform))
        self._record(context, request.id, "1", request.spec)
        self._registered.tasks[request.id.name] = request.spec.template
        return task_pb2.TaskCreateResponse()

    def CreateWorkflow(self, request, context):
        known = self._registered
        findings = compile_workflow(request.spec, known.tasks, self._platform, known.interfaces)
        if findings and request.id.name in self._exceptions:
            known.refused[request.id.name] = findings
        else:
            self._refuse(context, findings)
        self._record(context, request.id, "2", request.spec)
        known.workflows[request.id.name] = request.spec
        return workflow_pb2.WorkflowCreateResponse()

    def CreateLaunchPlan(self, request, context):
        workflow = self._registered.workflows.get(request.spec.workflow_id.name)
        if workflow is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{request.spec.workflow_id.name} is missing")
        self._refuse(context, compile_plan(request.spec, interface_of(workflow.template).inputs))
        plan = launch_plan_pb2.LaunchPlan(id=request.id, spec=request.spec)
        plan.closure.expected_inputs.CopyFrom(request.spec.default_inputs)
        self._record(context, request.id, "3", plan)
        self._registered.plans[request.id.name] = plan
        return launch_plan_pb2.LaunchPlanCreateResponse()

    def UpdateLaunchPlan(self, request, context):
        assert request.state == launch_plan_pb2.ACTIVE
        self._registered.active.append(request.id.name)
        return launch_plan_pb2.LaunchPlanUpdateResponse()

    def GetTask(self, request, context):
        found = task_pb2.Task(id=request.id)
        found.closure.compiled_task.template.CopyFrom(
            self._find(context, self._registered.tasks, request.id.name)
        )
        return found

    def GetWorkflow(self, request, context):
        if request.id.SerializeToString() not in self._made:  # of another version
            context.abort(grpc.StatusCode.NOT_FOUND, f"{request.id} is not registered")
        spec = self._find(context, self._registered.workflows, request.id.name)
        found = workflow_pb2.Workflow(id=request.id)
        compiled = found.closure.compiled_workflow
        compiled.primary.template.CopyFrom(spec.template)
        for template in spec.sub_workflows:
            compiled.sub_workflows.add().template.CopyFrom(template)
        for task in self._registered.tasks.values():
            compiled.tasks.add().template.CopyFrom(task)
        return found

    def GetLaunchPlan(self, request, context):
        return self._find(context, self._registered.plans, request.id.name)

    def CreateExecution(self, request, context):
        plan = self._find(context, self._registered.plans, request.spec.launch_plan.name)
        self._refuse(context, check_execution(plan.spec, request.inputs.literals))
        self._registered.started.append(request)
        return execution_pb2.ExecutionCreateResponse(
            id=identifier_pb2.WorkflowExecutionIdentifier(
                project=request.project, domain=request.domain, name=request.name or "started"
            )
        )

    def GetExecution(self, request, context):
        if request.id.name in self._registered.records:
            return self._registered.records[request.id.name]
        if not self._registered.started:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{request.id.name} is not known")
        found = execution_pb2.Execution(id=request.id)
        found.spec.CopyFrom(self._registered.started[-1].spec)
        found.closure.phase = core_execution.WorkflowExecution.QUEUED
        found.closure.created_at.GetCurrentTime()
        return found

    @staticmethod
    def _find(context, table: Mapping[str, Any], name: str):
        if name not in table:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{name} is not registered")
        return table[name]

    def _record(self, context, identifier, suffix: str, message) -> None:
        known, new = identifier.SerializeToString(), message.SerializeToString(deterministic=True)
        with self._lock:  # tasks are registered side by side
            if self._made.setdefault(known, new) != new:
                name = f"{identifier.name} {identifier.version}"
                self._refuse(context, [f"{name} with different structure already exists"])
            self._registered.ids.append(identifier)
            self._registered.write(identifier.name, suffix, message)

    @staticmethod
    def _refuse(context, findings: Sequence[str]) -> None:
        if findings:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "; ".join(findings))


@contextmanager
def recording_admin(
    folder: Path, platform: Platform = FRESH, exceptions: Sequence[str] = ()
) -> Iterator[Registered]:
    """Serve on loopback until the block ends.

    Args:
        folder: for the messages.
        platform: settings of Flyte.
        exceptions: workflows that are registered although a cluster would refuse them.
    """
    registered = Registered(folder)

    class Sink(BaseHTTPRequestHandler):
        """Takes the code that is shipped, as a signed URL does."""

        def do_PUT(self) -> None:
            payload = self.rfile.read(int(self.headers["Content-Length"]))
            (folder / "fast.tar.gz").write_bytes(payload)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Sink) as sink, ThreadPoolExecutor(4) as pool:
        threading.Thread(target=sink.serve_forever, args=(0.01,), daemon=True).start()
        server = grpc.server(pool)
        admin = _Admin(registered, f"http://127.0.0.1:{sink.server_port}", platform, exceptions)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, server)
        dataproxy_pb2_grpc.add_DataProxyServiceServicer_to_server(admin, server)
        registered.endpoint = f"dns:///127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        yield registered
        server.stop(grace=None).wait()
        sink.shutdown()
