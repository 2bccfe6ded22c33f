"""Runs of executions in MLflow: the parents that the runs of stages are nested in.

A parent is made by the first event of its execution that arrives. It is running as long as one of
its stages is, and has failed if the last attempt at one of them did, or if Flyte says so.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tasks.errors import DataError, EngineError
from tasks.provenance.lineage.connection import boundary
from tasks.provenance.lineage.descriptions import (
    ERROR,
    EXECUTION,
    FLYTE_EXECUTION,
    NOTE,
    OUTCOME,
    PARENT,
    STARTED,
    describe_execution,
    execution_name,
    tags_for_execution,
)
from tasks.provenance.lineage.registry import KEY
from tasks.store.interface import store_at

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

MAX_ATTACHED_BYTES = 8 * 2**20
"""Larger files stay in the store, and a tag names them."""
FILE_TAG = "file."
"""Of a run, followed by a file's name: its place in the store, if MLflow could not take it."""
_PAGE = 1000


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
            self._runs[execution] = self._find(execution) or self._make(execution, tags)
        return self._runs[execution]

    def resume(self, parent: str) -> None:
        """Mark the execution as running."""
        if parent and self._client.get_run(parent).info.status != "RUNNING":
            self._client.update_run(parent, status="RUNNING")

    def settle(self, parent: str) -> None:
        """Give the execution the status that follows from its stages."""
        if not parent:
            return
        children = self._client.search_runs(
            [self._experiment], f"tags.`{PARENT}` = '{parent}'", max_results=_PAGE
        )
        states = {child.info.status for child in children}
        if "RUNNING" in states:
            return
        failed = states & {"FAILED", "KILLED"}
        ends = [child.info.end_time for child in children if child.info.end_time is not None]
        status = min(failed) if failed else "FINISHED"
        self._client.set_terminated(parent, status, end_time=max(ends, default=None))

    def end(self, parent: str, message: str, time_ms: int) -> None:
        """Mark an execution as finished, with or without runs of stages, and say how it ended."""
        note = self._client.get_run(parent).data.tags.get(NOTE, "")
        if not note.startswith(message):
            self._client.set_tag(parent, NOTE, f"{message}\n\n{note}")
        self._client.set_tag(parent, OUTCOME, message)
        self._client.set_terminated(parent, "FINISHED", end_time=time_ms)

    def fail(self, flyte_execution: str, reason: str) -> None:
        """End the runs of an execution of Flyte; none if it failed before there was one.

        Flyte knows of failures that no stage saw, such as a pod that could not be made. A stage
        that runs again, as Recover makes it do, resumes them.
        """
        runs = self._client.search_runs(
            [self._experiment], f"tags.`{FLYTE_EXECUTION}` = '{flyte_execution}'", max_results=_PAGE
        )
        # A recovered execution is named by the runs of its own stages only.
        for parent in sorted({run.data.tags.get(PARENT, run.info.run_id) for run in runs}):
            tags = self._client.get_run(parent).data.tags
            self._client.set_tag(parent, ERROR, reason)
            self._client.set_tag(parent, NOTE, f"Failed: {reason}\n\n{tags.get(NOTE, '')}")
            self._client.set_terminated(parent, "FAILED")

    def show_model(self, parent: str, model: str, *, released: bool) -> None:
        """Name the version of a model that an execution registered."""
        if parent:
            tags = self._client.get_run(parent).data.tags
            self._client.set_tag(parent, "model", model)
            note = describe_execution(tags, model, released=released)
            self._client.set_tag(parent, NOTE, note)

    def _find(self, execution: str) -> str:
        runs = self._client.search_runs(
            [self._experiment], f"tags.`{KEY}` = '{execution}'", max_results=1
        )
        return runs[0].info.run_id if runs else ""

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
