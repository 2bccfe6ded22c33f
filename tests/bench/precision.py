"""Keep what `eachprompt evaluate --precision` measured as evidence.

    eachprompt evaluate --model released=FOLDER --precision bf16,int8 --store STORE
    python -m tests.bench.precision STORE --out tests/bench/precision.json

The numbers are those of the newest comparison of precisions in the store, unchanged.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import DataError
from tasks.formats.progression import PRECISIONS_FILE, read_precisions
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

MODULE = "tasks.evaluation.precision"
"""What the numbers are computed by."""


def newest(store: Path) -> Path:
    """Return the folder of the newest comparison of precisions in a store.

    Raises:
        DataError: it has none.
    """
    found = [*store.glob(f"objects/*/{PRECISIONS_FILE}")]
    if not found:
        raise DataError(
            f"{store} has no comparison of precisions; run eachprompt evaluate --precision first"
        )
    return max(found, key=lambda path: path.stat().st_mtime).parent


def main(arguments: Sequence[str]) -> None:
    """Read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.precision",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    reports = read_precisions(newest(options.store))
    words = ",".join(one.precision for one in reports)
    content = {
        **evidence_file.origin(f"eachprompt evaluate --model FOLDER --precision {words}", MODULE),
        "precisions": {one.precision: one.model_dump(mode="json") for one in reports},
    }
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
