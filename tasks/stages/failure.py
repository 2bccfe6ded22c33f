"""Flyte shell of an execution that failed; every workflow imports it, so it imports little."""

import os
import re

from tasks.pages import webhook
from tasks.platform.progress import print_line
from tasks.platform.shell import Failure, shell
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.descriptions import flyte_execution
from tasks.store import location

MAX_REASON = 500
"""Characters of the end of an error, which is where the reason stands."""
_USERS = re.compile(r"\b(?:SettingsError|DataError|TamperError): ")
"""Of a reason: what was put in is at fault, and a recovered execution has the same inputs."""


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
    text = f"[failed] {flyte}: {reason} {_advice(flyte, reason)}"
    problems = [
        webhook.post(os.environ.get(webhook.WEBHOOK, ""), text),
        _mark_failed(store, flyte, reason),
    ]
    untold = "".join(f" Not told: {problem}." for problem in problems if problem)
    print_line(f"{text}{untold}")


def _advice(flyte: str, reason: str) -> str:
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


def _mark_failed(store: str, flyte: str, reason: str) -> str:
    """Mark the runs of an execution in MLflow; return why they were not, '' if they were."""
    try:
        uri = location.absolute_store(store)
        tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
        Catalogue(tracking).fail(flyte, reason)
    except Exception as error:  # noqa: BLE001 - no error of ours may replace the execution's
        return f"{type(error).__name__}: {error}"
    return ""
