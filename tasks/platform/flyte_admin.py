"""What Flyte's admin knows of an execution, where this process has a configuration of its client.

An operator's machine has one (`~/.flyte/config.yaml`, FLYTECTL_CONFIG). Pods have none unless their
template sets FLYTE_PLATFORM_URL.
"""

import logging
import os
from pathlib import Path
from typing import NamedTuple

ANSWER_S = 20.0
"""Deadline of an answer: whoever asks goes on without it."""
logger = logging.getLogger(__name__)


class FlyteRecord(NamedTuple):
    """An execution in Flyte's own words."""

    status: str
    """As MLflow has it: 'RUNNING', 'FINISHED', 'FAILED' or 'KILLED'."""
    reason: str
    """Why it failed or who ended it; '' of others."""
    started_by: str
    """Whoever Flyte authenticated; '' without authentication."""
    launch_plan: str
    """project/domain/name."""


def fetch_record(execution: str) -> FlyteRecord | None:
    """Fetch the record of an execution; None if Flyte cannot be asked, or does not know it.

    Args:
        execution: project/domain/name.
    """
    if not _is_configured():
        return None
    import grpc
    from flyteidl.admin import execution_pb2
    from flyteidl.core import execution_pb2 as core
    from flyteidl.core import identifier_pb2
    from flyteidl.service.admin_pb2_grpc import AdminServiceStub
    from flytekit.clients.auth_helper import get_authenticated_channel
    from flytekit.configuration import PlatformConfig

    project, domain, name = execution.split("/")
    identifier = identifier_pb2.WorkflowExecutionIdentifier(
        project=project, domain=domain, name=name
    )
    try:
        with get_authenticated_channel(PlatformConfig.auto()) as channel:
            found = AdminServiceStub(channel).GetExecution(
                execution_pb2.WorkflowExecutionGetRequest(id=identifier), timeout=ANSWER_S
            )
    except (grpc.RpcError, OSError, ValueError) as error:
        detail = error.details() if isinstance(error, grpc.Call) else error
        logger.warning("Flyte does not say how %s ended: %.200s", execution, detail)
        return None
    phases = core.WorkflowExecution
    closure, plan = found.closure, found.spec.launch_plan
    status, reason = "RUNNING", ""
    match closure.phase:
        case phases.SUCCEEDED:
            status = "FINISHED"
        case phases.FAILED | phases.TIMED_OUT:
            status, reason = "FAILED", closure.error.message
        case phases.ABORTED:
            by = closure.abort_metadata.principal or "somebody"
            status, reason = "KILLED", f"{by} terminated it: {closure.abort_metadata.cause}"
    return FlyteRecord(
        status=status,
        reason=reason.strip(),
        started_by=found.spec.metadata.principal,
        launch_plan=f"{plan.project}/{plan.domain}/{plan.name}" if plan.name else "",
    )


def _is_configured() -> bool:
    """Whether pyflyte would find an admin: flytekit's own default is a sandbox on this machine."""
    named = os.environ.get("FLYTECTL_CONFIG", "")
    places = [Path.home() / ".flyte" / "config.yaml", Path.home() / ".flyte" / "config"]
    return bool(os.environ.get("FLYTE_PLATFORM_URL")) or any(
        path.is_file() for path in ([Path(named)] if named else places)
    )
