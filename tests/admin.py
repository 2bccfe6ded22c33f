"""A Flyte admin that records what is registered: the services of flyteidl over real gRPC.

It refuses what a cluster would refuse as well: a workflow of tasks that are not there, and a launch
plan of a workflow that is not there. It executes nothing.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from flyteidl.admin import launch_plan_pb2, task_pb2, workflow_pb2
from flyteidl.service import admin_pb2_grpc, dataproxy_pb2, dataproxy_pb2_grpc

BUNDLE = "s3://flyte/metadata/fast.tar.gz"
"""Where pods would find the shipped code."""


@dataclass
class Registered:
    """Everything that was registered, by name."""

    folder: Path
    """Of the messages, in files as `pyflyte package` writes them, and the shipped code."""
    endpoint: str = ""
    ids: list[Any] = field(default_factory=list)
    """Project, domain, name and version, in the order of registration."""
    active: list[str] = field(default_factory=list)
    """Launch plans that were activated."""

    def write(self, name: str, suffix: str, message: Any) -> None:
        (self.folder / f"{len(self.ids):03}_{name}_{suffix}.pb").write_bytes(
            message.SerializeToString()
        )

    def lacks(self, wanted: Sequence[str], suffix: str) -> list[str]:
        there = {path.name.split("_", 1)[1] for path in self.folder.glob(f"*_{suffix}.pb")}
        return [name for name in wanted if f"{name}_{suffix}.pb" not in there]


class _Admin(admin_pb2_grpc.AdminServiceServicer, dataproxy_pb2_grpc.DataProxyServiceServicer):
    def __init__(self, registered: Registered, sink: str) -> None:
        self._registered = registered
        self._sink = sink
        self._lock = threading.Lock()

    def CreateUploadLocation(self, request, context):
        return dataproxy_pb2.CreateUploadLocationResponse(
            signed_url=f"{self._sink}/fast.tar.gz", native_url=BUNDLE
        )

    def CreateTask(self, request, context):
        self._record(request.id, "1", request.spec)
        return task_pb2.TaskCreateResponse()

    def CreateWorkflow(self, request, context):
        nodes = [
            node
            for template in (request.spec.template, *request.spec.sub_workflows)
            for node in template.nodes
        ]
        called = [node.task_node.reference_id.name for node in nodes if node.HasField("task_node")]
        self._refuse(context, self._registered.lacks(called, "1"))
        self._record(request.id, "2", request.spec)
        return workflow_pb2.WorkflowCreateResponse()

    def CreateLaunchPlan(self, request, context):
        self._refuse(context, self._registered.lacks([request.spec.workflow_id.name], "2"))
        plan = launch_plan_pb2.LaunchPlan(id=request.id, spec=request.spec)
        self._record(request.id, "3", plan)
        return launch_plan_pb2.LaunchPlanCreateResponse()

    def UpdateLaunchPlan(self, request, context):
        assert request.state == launch_plan_pb2.ACTIVE
        self._registered.active.append(request.id.name)
        return launch_plan_pb2.LaunchPlanUpdateResponse()

    def _record(self, identifier, suffix: str, message) -> None:
        with self._lock:  # tasks are registered side by side
            self._registered.ids.append(identifier)
            self._registered.write(identifier.name, suffix, message)

    @staticmethod
    def _refuse(context, missing: Sequence[str]) -> None:
        if missing:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not registered: {missing}")


@contextmanager
def recording_admin(folder: Path) -> Iterator[Registered]:
    """Serve on loopback until the block ends."""
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
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        server = grpc.server(pool)
        admin = _Admin(registered, f"http://127.0.0.1:{sink.server_port}")
        admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, server)
        dataproxy_pb2_grpc.add_DataProxyServiceServicer_to_server(admin, server)
        registered.endpoint = f"dns:///127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        yield registered
        server.stop(grace=None).wait()
        sink.shutdown()
