"""Flyte shell of an execution that failed; every workflow imports it, so it imports little."""

import os
import re

from data_schemas.artifacts import StoreRef
from tasks.pages import webhook
from tasks.platform.flyte_admin import fetch_record
from tasks.platform.shell import Failure, shell
from tasks.platform.tables import print_line
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.closing import (
    MAX_REASON,
    UnreportedExecution,
    close_ended,
    mark_reported,
)
from tasks.provenance.lineage.descriptions import flyte_execution
from tasks.store import location

_USERS = re.compile(r"\b(?:SettingsError|DataError|TamperError): ")
"""Words of a reason that blames what was put in: and a recovered execution has the same inputs."""


@shell("tell_failure")
def tell_failure(store: str, err: Failure | None = None) -> None:
    """Tell the webhook how to continue an execution that failed, then mark its run in MLflow.

    Whatever is wrong with MLflow or the store, this ends well: Flyte would show an error of this
    task in place of the one that the execution failed with.

    Args:
        store: of the execution, as it was given.
        err: from Flyte.
    """
    flyte = flyte_execution()
    reason = err.message.strip()[-MAX_REASON:] if err else "Flyte gives no reason"
    text = f"[failed] {flyte}: {reason} {advice(flyte, reason)}"
    unheard = webhook.post(os.environ.get(webhook.WEBHOOK, ""), text)
    problems = [unheard, _mark_failed(store, flyte, reason, reported=not unheard)]
    untold = "".join(f" Not told: {problem}." for problem in problems if problem)
    print_line(f"{text}{untold}")


def report_ended(store: StoreRef, own: str) -> None:
    """Close the runs of executions that are over, and tell the webhook what it did not hear.

    Flyte recovers the failure node with the rest, so that a recovered execution that fails again
    runs no `tell_failure`; an execution that somebody terminated runs none either.

    Args:
        store: that an execution opens.
        own: the id of that execution.
    """
    reported: list[UnreportedExecution] = []
    for one in close_ended(store, own, fetch_record):
        word = "failed" if one.status == "FAILED" else "terminated"
        reason = one.reason or "Flyte gives no reason"
        text = f"[{word}] {one.flyte} ({one.workflow}): {reason} {advice(one.flyte, reason)}"
        unheard = webhook.post(os.environ.get(webhook.WEBHOOK, ""), text)
        print_line(f"{text}{f' Not told: {unheard}.' if unheard else ''}")
        if not unheard:
            reported.append(one)
    mark_reported(store, reported)


def advice(flyte: str, reason: str) -> str:
    """Say what to do about an execution, project/domain/name, that failed for this reason."""
    if _USERS.search(reason):
        return (
            "Correct that and start a new execution: what was finished comes from the cache. "
            "Recover would run with the same inputs."
        )
    project, domain, name = flyte.split("/")
    return (
        "When the cause is gone, it goes on from what is committed: "
        f"flytectl create execution -p {project} -d {domain} --recover {name}"
    )


def _mark_failed(store: str, flyte: str, reason: str, *, reported: bool) -> str:
    """Mark the runs of an execution in MLflow; return why they were not, '' if they were."""
    try:
        uri = location.absolute_store(store)
        tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
        Catalogue(tracking).fail(flyte, reason, reported=reported)
    except Exception as error:  # noqa: BLE001 - no error of ours may replace the execution's
        return f"{type(error).__name__}: {error}"
    return ""
