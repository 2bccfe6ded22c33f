"""The commands `history`, `publish` and `rollback`: their options, before any library is loaded."""

import argparse
import importlib
import inspect
import os
from collections.abc import Sequence
from pathlib import Path

from tasks.platform.command_line import command_parser, positive
from tasks.platform.flyte_admin import fetch_record
from tasks.platform.tables import Screen, print_line

HUB = "tasks.store.hub"
LOCATION = "tasks.store.location"
HISTORY = "tasks.provenance.release.history"
CLOSING = "tasks.provenance.lineage.closing"
PUBLISH = "tasks.provenance.release.publish"
ROLLBACK = "tasks.provenance.release.rollback"
"""Load MLflow and pyarrow: not before the arguments are known to be right."""


def history(arguments: Sequence[str]) -> None:
    """Print what was released under a name, when and by what, and which candidates were refused.

    eachprompt history --store runs --model eachprompt-tiny
    """
    parser = options("history", history.__doc__)
    parser.add_argument("--model", default="eachprompt-tiny", help="[eachprompt-tiny]")
    args = parser.parse_args(arguments)
    location, module = importlib.import_module(LOCATION), importlib.import_module(HISTORY)
    store = location.existing_store(args.store, tracking_uri())
    importlib.import_module(CLOSING).close_ended(store, "", fetch_record)
    module.show(args.model, store)


def publish(arguments: Sequence[str]) -> None:
    """Audit a release and copy it into a folder as the Hugging Face hub lays models out.

    eachprompt publish models:/eachprompt-tiny@released --out my-model
    eachprompt publish models:/eachprompt-tiny@released --out my-model --push MY_NAME/my-model
    """
    parser = options("publish", publish.__doc__)
    parser.add_argument("model", help="models:/NAME@released or models:/NAME/3")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload it there, with your token")
    args = parser.parse_args(arguments)
    location, module = importlib.import_module(LOCATION), importlib.import_module(PUBLISH)
    store = location.existing_store(args.store, tracking_uri())
    release = module.publish_release(args.model, store, args.out)
    console = Screen(soft_wrap=True)
    console.print(f"Wrote {args.out}: {release}")
    if args.push:
        place = importlib.import_module(HUB).push_model(args.out, args.push)
        console.print(f"Pushed to {place}")
        return
    name = args.model.removeprefix("models:/").partition("@")[0].partition("/")[0]
    console.print(f"With a network and a token:\n\n    hf upload YOUR_NAME/{name} {args.out}")


def rollback(arguments: Sequence[str]) -> None:
    """Make an earlier version of a registered model the released one again.

    eachprompt rollback --store runs --model eachprompt-tiny
    """
    parser = options("rollback", rollback.__doc__)
    parser.add_argument("--model", default="eachprompt-tiny", help="[eachprompt-tiny]")
    parser.add_argument("--to", type=positive, help="version [the alias 'previous']")
    parser.add_argument("--by", default="", help="who decided it [the user of this process]")
    parser.add_argument("--reason", default="", help="why; part of the statement")
    args = parser.parse_args(arguments)
    location, module = importlib.import_module(LOCATION), importlib.import_module(ROLLBACK)
    store = location.existing_store(args.store, tracking_uri())
    version = module.roll_back(args.model, str(args.to or ""), store, args.by, args.reason)
    print_line(f"models:/{args.model}@{module.RELEASED} is version {version.number} again.")


def options(command: str, about: str | None) -> argparse.ArgumentParser:
    """Begin the options of a command with its store."""
    parser = command_parser(f"eachprompt {command}", inspect.cleandoc(about or ""))
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    return parser


def tracking_uri() -> str:
    """Return the tracking server of the environment; '' = that of the store."""
    return os.environ.get("MLFLOW_TRACKING_URI", "")
