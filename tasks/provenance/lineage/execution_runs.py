"""Runs of executions in MLflow: the parents that the runs of stages are nested in.

A parent is made by the first event of its execution that arrives. It runs until the last of its
tasks says that it is over, and has failed if the last attempt at one of its stages did, or if Flyte
says so. Events may arrive late and in any order, so a start that is older than the end changes
nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tasks.errors import DataError, EngineError
from tasks.provenance.lineage.connection import boundary
from tasks.provenance.lineage.descriptions import (
    ENDED,
    ERROR,
    EXECUTION,
    FLYTE_EXECUTION,
    LAST,
    NOTE,
    OUTCOME,
    PARENT,
    REPORTED,
    STARTED,
    describe_execution,
    execution_name,
    tags_for_execution,
)
from tasks.provenance.lineage.registry import KEY
from tasks.store.interface import store_at

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)

MAX_ATTACHED_BYTES = 8 * 2**20
"""Larger files stay in the store, and a tag names them."""
FILE_TAG = "file."
"""Tag of a run, followed by a file's name: its place in the store, if MLflow could not take it."""
_PAGE = 1000
_ENDED_BADLY = {"FAILED", "KILLED"}
_VERBS = {"FAILED": "Failed", "KILLED": "Terminated"}


class ExecutionRuns:
    """The runs of executions in one experiment; asking twice gives the same run."""

    def __init__(self, client: "MlflowClient", experiment: str) -> None:
        self._client = client
        self._experiment = experiment
        self._runs: dict[str, str] = {}

    def open(self, tags: Mapping[str, str]) -> str:
        """Return the run of the execution that the tags of a run name, '' if they name none."""
        execution = tags.get(EXECUTION, "")
        if not execution:
            return ""
        if execution not in self._runs:
            self._runs[execution] = self.find(execution) or self._make(execution, tags)
        return self._runs[execution]

    def find(self, key: str) -> str:
        """Return the run of an execution or a stage by its key, '' if there is none."""
        runs = self._client.search_runs(
            [self._experiment], f"tags.`{KEY}` = '{key}'", max_results=1
        )
        return runs[0].info.run_id if runs else ""

    def resume(self, parent: str, tags: Mapping[str, str], time_ms: int) -> None:
        """Mark the execution as running, unless it ended after the stage with these tags began."""
        if not parent:
            return
        run = self._client.get_run(parent)
        flyte = tags.get(FLYTE_EXECUTION, "")
        # Recover goes on with it. The name comes first: a pod that dies between the two would
        # leave an execution that fails under a name of which people were told.
        if flyte and run.data.tags.get(FLYTE_EXECUTION) != flyte:
            self._client.set_tag(parent, FLYTE_EXECUTION, flyte)
        if run.info.status != "RUNNING" and time_ms >= (run.info.end_time or 0):
            self._client.update_run(parent, status="RUNNING")

    def settle(self, parent: str) -> None:
        """Give the execution the status that follows from its stages and its last tasks."""
        if not parent:
            return
        run, children = self._client.get_run(parent), self.stages(parent)
        states = {child.info.status for child in children}
        if "RUNNING" in states or run.info.status in _ENDED_BADLY:  # until a stage begins again
            return
        tags = run.data.tags
        times = {name: int(tags[name]) for name in tags if name.startswith(ENDED)}
        last = {f"{ENDED}{task}" for task in tags[LAST].split(",")} if LAST in tags else set()
        if failed := states & _ENDED_BADLY if not last or last - times.keys() else set():
            status = min(failed)
        elif last <= times.keys():
            status = "FINISHED"
        else:
            return
        ends = [child.info.end_time for child in children if child.info.end_time is not None]
        self._client.set_terminated(
            parent, status, end_time=max([*ends, *times.values()], default=None)
        )

    def stages(self, parent: str) -> "Sequence[Run]":
        """Return the runs of the stages of an execution."""
        return self._client.search_runs(
            [self._experiment], f"tags.`{PARENT}` = '{parent}'", max_results=_PAGE
        )

    def end(self, parent: str, message: str, time_ms: int, task: str = "") -> None:
        """Mark an execution as finished, with or without runs of stages, and say how it ended.

        Args:
            parent: its run.
            message: for people; '' for none.
            time_ms: when it ended.
            task: one of its last tasks that has ended; '' where all of it has.
        """
        if message:
            note = self._client.get_run(parent).data.tags.get(NOTE, "")
            if not note.startswith(message):
                self._client.set_tag(parent, NOTE, f"{message}\n\n{note}")
            self._client.set_tag(parent, OUTCOME, message)
        if task:
            self._client.set_tag(parent, f"{ENDED}{task}", str(time_ms))
            self.settle(parent)
        else:
            self._client.set_terminated(parent, "FINISHED", end_time=time_ms)

    def fail(self, flyte_execution: str, reason: str, *, reported: bool) -> None:
        """End the runs of an execution of Flyte; none if it failed before there was one.

        Flyte knows of failures that no stage saw, such as a pod that could not be made. A stage
        that runs again, as Recover makes it do, resumes them.

        Args:
            flyte_execution: project/domain/name.
            reason: for people.
            reported: whether they were told.
        """
        runs = self._client.search_runs(
            [self._experiment], f"tags.`{FLYTE_EXECUTION}` = '{flyte_execution}'", max_results=_PAGE
        )
        # A recovered execution is named by the runs of its own stages only.
        for parent in sorted({run.data.tags.get(PARENT, run.info.run_id) for run in runs}):
            run = self._client.get_run(parent)
            if run.info.status == "FINISHED" and LAST in run.data.tags:
                continue  # one of several that an execution of Flyte opened
            self.close(parent, "FAILED", reason)
            if reported:
                self._client.set_tag(parent, REPORTED, flyte_execution)

    def close(self, parent: str, status: str, reason: str) -> None:
        """End the run of an execution, and those of its stages that still run.

        Args:
            parent: its run.
            status: 'FINISHED', 'FAILED' or 'KILLED'.
            reason: for people; '' of one that finished.
        """
        for child in self.stages(parent):
            if child.info.status == "RUNNING":
                self._client.set_terminated(child.info.run_id, "KILLED")
        if reason:
            note = self._client.get_run(parent).data.tags.get(NOTE, "")
            head = f"{_VERBS[status]}: {reason}"
            if not note.startswith(head):
                self._client.set_tag(parent, NOTE, f"{head}\n\n{note}")
            self._client.set_tag(parent, ERROR, reason)
        self._client.set_terminated(parent, status)

    def show_model(self, parent: str, model: str, *, released: bool) -> None:
        """Name the version of a model that an execution registered."""
        if parent:
            tags = self._client.get_run(parent).data.tags
            self._client.set_tag(parent, "model", model)
            note = describe_execution(tags, model, released=released)
            self._client.set_tag(parent, NOTE, note)

    def _make(self, execution: str, tags: Mapping[str, str]) -> str:
        started = float(tags.get(STARTED, 0.0))
        own = tags_for_execution(tags)
        return self._client.create_run(
            self._experiment,
            start_time=int(1000 * started),
            tags={KEY: execution, NOTE: describe_execution(own), **own},
            run_name=execution_name(own),
        ).info.run_id


def attach(client: "MlflowClient", run_id: str, uri: str, name: str) -> None:
    """Copy a small text file of the store to the artifacts of a run.

    An MLflow without an artifact store does not stop anything: a tag names the file's place.
    """
    try:
        problem = _upload(client, run_id, uri, name)
    except (EngineError, DataError) as error:
        problem = str(error)
    if problem:
        logger.warning("%s is not among the artifacts in MLflow: %.300s", uri, problem)
        client.set_tag(run_id, f"{FILE_TAG}{name}", uri)


def _upload(client: "MlflowClient", run_id: str, uri: str, name: str) -> str:
    """Upload a file; returns why it was not, '' if it was."""
    payload = store_at(uri).read_bytes()
    if len(payload) > MAX_ATTACHED_BYTES:
        return f"it has {len(payload):,} bytes, at most {MAX_ATTACHED_BYTES:,} are attached"
    place = client.get_run(run_id).info.artifact_uri or ""
    if client.tracking_uri.startswith("http") and urlsplit(place).scheme in ("", "file"):
        return f"the server keeps artifacts in {place}, which only its own machine can write"
    with boundary():
        client.log_text(run_id, payload.decode(), name)
    return ""
