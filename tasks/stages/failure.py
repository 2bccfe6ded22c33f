"""Flyte shell of an execution that failed; every workflow imports it, so it imports little."""

import os

from rich.console import Console

from tasks.pages import webhook
from tasks.platform.shell import Failure, shell
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.descriptions import flyte_execution
from tasks.store import location

MAX_REASON = 500
"""Characters of the end of an error, which is where the reason stands."""


@shell("tell_failure")
def tell_failure(store: str, err: Failure | None = None) -> None:
    """Mark the run of an execution that failed in MLflow, and tell the webhook how to continue it.

    Args:
        store: of the execution, as it was given.
        err: from Flyte.
    """
    flyte = flyte_execution()
    reason = err.message.strip()[-MAX_REASON:] if err else "Flyte gives no reason"
    uri = location.absolute_store(store)
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    Catalogue(tracking).fail(flyte, reason)
    project, domain, name = flyte.split("/")
    text = (
        f"[failed] {flyte}: {reason} When the cause is gone, it goes on from what is committed: "
        f"flytectl create execution -p {project} -d {domain} --recover {name}"
    )
    failure = webhook.post(os.environ.get(webhook.WEBHOOK, ""), text)
    untold = f" Nobody was told: {failure}." if failure else ""
    Console(soft_wrap=True, highlight=False).print(f"{text}{untold}", markup=False)
