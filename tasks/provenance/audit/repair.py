"""Rebuild MLflow from what a store holds.

python -m tasks.provenance.audit.repair --store runs

Fills an empty MLflow, or adds what is missing in one: runs, curves, datasets, models, versions and
aliases. A sqlite file that is broken is kept under another name. Nothing in the store is changed;
the audit tells whether the statements are sound. MLFLOW_TRACKING_URI names another MLflow than
the store's own.
"""

import os
from collections.abc import Sequence

from tasks.platform.command_line import command_parser, run
from tasks.platform.tables import Screen
from tasks.provenance.lineage.rebuild import rebuild
from tasks.store import location


def main(arguments: Sequence[str]) -> None:
    """Rebuild; see --help."""
    parser = command_parser("python -m tasks.provenance.audit.repair", __doc__)
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    store = location.existing_store(
        parser.parse_args(arguments).store, os.environ.get("MLFLOW_TRACKING_URI", "")
    )
    result = rebuild(store)
    console = Screen(soft_wrap=True)
    if result.broken_file:
        console.print(f"The broken MLflow store is kept as {result.broken_file}.")
    console.print(
        f"MLflow holds {result.runs} runs of {store.uri}; {result.derived} of them, whose events "
        "were lost, from their statements and without curves.",
    )


if __name__ == "__main__":
    run(main)
