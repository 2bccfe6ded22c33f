"""What people decide about files that a night held: yes or no, by whom and why, signed.

    eachprompt approve drop.csv --by ann --because "the shop renamed its columns"
    eachprompt reject drop.csv --by ann --because "a test export"

    eachprompt approve models:/NAME/3 --by ann --because "read the answers page"

The last is of a release whose settings ask for it (release.approvals), and takes another key.

An approved file is read again in the next night, whatever it was held for; a rejected one never.
"""

import argparse
import importlib
import os
from collections.abc import Sequence

from data_schemas.intake import FileStatus
from data_schemas.settings import RetrainSettings
from tasks.platform.command_line import command_parser
from tasks.platform.tables import print_line

RULING = "tasks.retraining.ruling"
APPROVAL = "tasks.provenance.release.approval"
LOCATION = "tasks.store.location"
"""Load pyarrow: not before the arguments are known to be right."""
ENDS = {
    FileStatus.APPROVED: "read again in the next night",
    FileStatus.REJECTED: "never read again",
}


def approve(arguments: Sequence[str]) -> None:
    """Say yes; see --help."""
    if any(one.startswith("models:/") for one in arguments):
        _approve_release(arguments)
        return
    decide("approve", FileStatus.APPROVED, arguments)


def _approve_release(arguments: Sequence[str]) -> None:
    """Record a yes to a release, and say what is still missing."""
    parser = argparse.ArgumentParser(prog="eachprompt approve", description=__doc__)
    parser.add_argument("model", help="models:/NAME/3")
    parser.add_argument("--by", required=True, help="who decides it")
    parser.add_argument("--because", required=True, help="why; part of the statement")
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    args = parser.parse_args(arguments)
    location, module = importlib.import_module(LOCATION), importlib.import_module(APPROVAL)
    store = location.existing_store(args.store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    missing = module.approve_release(args.model, store, args.by, args.because)
    rest = f"{missing} more by other keys are needed" if missing else "it is released"
    print_line(f"{args.model} is approved by {args.by}; {rest}.")


def reject(arguments: Sequence[str]) -> None:
    """Say no; see --help."""
    decide("reject", FileStatus.REJECTED, arguments)


def decide(command: str, status: FileStatus, arguments: Sequence[str]) -> None:
    """Record what somebody decided about held files, and say what follows."""
    parser = command_parser(f"eachprompt {command}", __doc__)
    default = RetrainSettings().inbox
    parser.add_argument("file", nargs="+", help="name in the inbox, as the night names it")
    parser.add_argument("--by", required=True, help="who decides it")
    parser.add_argument("--because", required=True, help="why; part of the statement")
    parser.add_argument("--inbox", default=default, help=f"folder or s3:// prefix [{default}]")
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    args = parser.parse_args(arguments)
    location, ruling = importlib.import_module(LOCATION), importlib.import_module(RULING)
    store = location.existing_store(args.store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    ruled = ruling.rule(store, args.inbox, args.file, status, by=args.by, because=args.because)
    print_line(f"{status.capitalize()} by {ruled.by}: {', '.join(ruled.files)}; {ENDS[status]}.")
