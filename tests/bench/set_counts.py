"""What curation kept of sets, by source and language, as a file that pages are rendered from.

    eachprompt curate --sources SOURCES --store STORE
    python -m tests.bench.set_counts STORE "eachprompt curate --sources SOURCES" --out FILE

The store should hold that one curated set.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_schemas.arrow import read_table
from data_schemas.rows import HELD_OUT, Problem
from tasks.curation.curate import REPORT
from tasks.errors import DataError
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

MODULE = "tasks.curation.curate"


def counts(curated: Path) -> dict[str, Any]:
    """Count what was kept and left out of every source, and held out by suite and language.

    `thinking` is that of the demonstrations by source and language; {} without demonstrations.
    """
    report = json.loads((curated / REPORT).read_bytes())
    held_out: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for problem in read_table(curated / HELD_OUT, Problem):
        held_out[problem.source][problem.language] += 1
    return {
        "sources": {
            name: {
                "items": one["items"],
                "kept": one["kept"],
                "left_out": one["dropped"] | one["quarantined"],
            }
            for name, one in report["sources"].items()
        },
        "held_out": held_out,
        "thinking": report["thinking_languages"],
    }


def main(arguments: Sequence[str]) -> None:
    """Read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.set_counts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("command", help="that made the store")
    parser.add_argument("--out", type=Path, required=True, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    curated = [path.parent for path in options.store.glob(f"objects/*/{HELD_OUT}")]
    if len(curated) != 1:
        raise DataError(f"{options.store} has {len(curated)} curated sets; name a store with one")
    content = {**evidence_file.origin(options.command, MODULE), **counts(curated[0])}
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
