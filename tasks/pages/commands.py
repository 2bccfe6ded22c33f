"""The command `compare-runs`: its options, before any library is loaded."""

import importlib
import os
from collections.abc import Sequence

import click

from tasks.platform.command_line import command_parser

LOCATION = "tasks.store.location"
PAGE = "tasks.pages.two_executions"
"""Load pyarrow: not before the arguments are known to be right."""
EXAMPLES = """examples:
  eachprompt compare-runs 20261126-020424-58036c 20261126-101500-1f0a2b --store runs
"""


def compare_runs(arguments: Sequence[str]) -> None:
    """Compare two executions on one page: settings, models, families, tokens, answers."""
    parser = command_parser("eachprompt compare-runs", compare_runs.__doc__, EXAMPLES)
    parser.add_argument("before", help="execution, as runs/index.html names it")
    parser.add_argument("after", help="execution")
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    args = parser.parse_args(arguments)
    location, page = importlib.import_module(LOCATION), importlib.import_module(PAGE)
    store = location.existing_store(args.store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    click.echo(f"Page: {page.compare(args.before, args.after, store)}")
