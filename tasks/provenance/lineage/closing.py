"""Close the runs in MLflow of executions that ended without a word.

A pod that was lost, an execution that somebody terminated, a process that was killed: none of them
says that it is over. Whoever opens the store next asks Flyte, where it can, or looks for a sign of
life: the lease that a process of this machine holds, a stage that began or ended, the leases in S3
that stages renew. Where neither answers, a run is left as it is until longer than any of its stages
may take or wait.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data_schemas.artifacts import StoreRef
from tasks.errors import PipelineError
from tasks.platform.flyte_admin import FlyteRecord
from tasks.platform.resources import STAGES, WAIT
from tasks.provenance.lineage.connection import EXPERIMENT, boundary, connect
from tasks.provenance.lineage.descriptions import (
    ERROR,
    EXECUTION,
    FLYTE_EXECUTION,
    LAST,
    LAUNCH_PLAN,
    REPORTED,
    STAGE,
    STORE,
    USER,
    WORKFLOW,
)
from tasks.provenance.lineage.execution_runs import ExecutionRuns
from tasks.provenance.lineage.registry import KEY
from tasks.provenance.lineage.shipping import sync, workplace
from tasks.store.interface import store_at
from tasks.store.lease import is_held, last_renewal

if TYPE_CHECKING:
    from mlflow.entities import Run

logger = logging.getLogger(__name__)

Ask = Callable[[str], FlyteRecord | None]
"""Flyte's record of an execution, project/domain/name; None if it does not answer."""
NEWEST = 200
"""Executions that are looked at."""
MAX_REASON = 500
"""Characters of the end of an error, which is where the reason stands."""
_HOUR = 3600.0
_ENDED_BADLY = ("FAILED", "KILLED")


class UnreportedExecution(NamedTuple):
    """An execution that did not end well, and of which nobody was told."""

    run_id: str
    execution: str
    workflow: str
    flyte: str
    """project/domain/name; '' of one on somebody's machine."""
    status: str
    reason: str


def lease_of(store: StoreRef, execution: str) -> Path:
    """Return the lease that a process of this machine holds while it runs an execution."""
    return workplace(store) / "leases" / "executions" / f"{execution}.lease"


def close_ended(store: StoreRef, own: str, ask: Ask) -> list[UnreportedExecution]:
    """Close the runs of other executions on a store that are over; an outage stops nothing.

    Args:
        store: whose runs are looked at.
        own: execution that goes on; '' for none.
        ask: for Flyte's record.

    Returns:
        Those on a cluster that did not end well and that `mark_reported` has not marked.
    """
    try:
        sync(store)
        with boundary():
            return list(_close(store, own, ask))
    except (PipelineError, OSError) as error:  # whoever may only read closes nothing
        logger.warning("runs of executions that ended are not closed: %s", error)
        return []


def mark_reported(store: StoreRef, ended: Sequence[UnreportedExecution]) -> None:
    """Record that people were told of these."""
    try:
        with boundary():
            client = connect(store.tracking_uri)
            for one in ended:
                client.set_tag(one.run_id, REPORTED, one.flyte)
    except PipelineError as error:
        logger.warning("people will be told again: %s", error)


def _close(store: StoreRef, own: str, ask: Ask) -> Iterator[UnreportedExecution]:
    client = connect(store.tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return
    runs = ExecutionRuns(client, experiment.experiment_id)
    parents = client.search_runs(
        [experiment.experiment_id],
        f"tags.`{STORE}` = '{store.id}' and attributes.status != 'FINISHED'",
        max_results=NEWEST,
        order_by=["attributes.start_time DESC"],
    )
    for parent in parents:
        tags, run_id = parent.data.tags, parent.info.run_id
        execution, flyte = tags.get(EXECUTION, ""), tags.get(FLYTE_EXECUTION, "")
        if tags.get(KEY) != execution or execution == own:  # the run of a stage
            continue
        status, reason = parent.info.status, tags.get(ERROR, "")
        if status == "RUNNING":
            record = ask(flyte) if flyte else None
            if record:
                for name, value in ((USER, record.started_by), (LAUNCH_PLAN, record.launch_plan)):
                    if value:
                        client.set_tag(run_id, name, value)
                status, reason = record.status, record.reason[-MAX_REASON:]
            else:
                status, reason = _by_signs(store, parent, runs.stages(run_id))
            if status != "RUNNING":
                runs.close(run_id, status, reason)
        # Runs without LAST are of a version that marked none as reported.
        if status in _ENDED_BADLY and flyte and LAST in tags and tags.get(REPORTED) != flyte:
            yield UnreportedExecution(
                run_id, execution, tags.get(WORKFLOW, ""), flyte, status, reason
            )


def _by_signs(store: StoreRef, parent: "Run", stages: "Sequence[Run]") -> tuple[str, str]:
    """Return the status of an execution, and why, by its signs of life."""
    tags = parent.data.tags
    if FLYTE_EXECUTION not in tags:
        place = lease_of(store, tags[EXECUTION])
        if not place.exists():
            return "RUNNING", ""  # on another machine, or not known to this one
        return ("RUNNING", "") if is_held(place) else ("KILLED", "its process was killed")
    times = [parent.info.start_time, *(one.info.start_time for one in stages)]
    times += [one.info.end_time for one in stages if one.info.end_time]
    running = [one.data.tags.get(STAGE, "") for one in stages if one.info.status == "RUNNING"]
    silent_h = (time.time() - max(times) / 1000) / _HOUR
    if silent_h < WAIT:
        return "RUNNING", ""
    renewals = [moment for owner, moment in _leases(store) if owner == tags[EXECUTION]]
    if renewals:
        silent_h = min(silent_h, (time.time() - max(renewals)) / _HOUR)
    limit_h = WAIT if renewals else max([WAIT, *map(_longest_h, running)])
    if silent_h < limit_h:
        return "RUNNING", ""
    return "KILLED", f"nothing was heard of it for {silent_h:.0f} hours, and Flyte was not asked"


def _longest_h(stage: str) -> float:
    """Hours that a stage may take, by the first word of its name: 'evaluate/base'."""
    word = stage.partition("/")[0]
    return STAGES[word].hours if word in STAGES else max(one.hours for one in STAGES.values())


def _leases(store: StoreRef) -> Iterator[tuple[str, float]]:
    """Yield (execution, last renewal) of the leases of stages in a remote store."""
    place = store_at(f"{store.uri}/state")
    if place.local_path is not None:
        return
    for name in place.list_files():
        if name.endswith(".lease"):
            owner, moment = last_renewal(place.read_bytes(name))
            yield owner.partition(",")[0], moment
