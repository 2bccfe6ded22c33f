"""What the models of a store solve at each level of difficulty, as a file for pages.

    make evidence NAME=wishes SEEDS=3 ARGS="--store STORE"
    python -m tests.bench.levels STORE "make evidence NAME=wishes SEEDS=3" --out FILE

It reads all evaluations in the store and pools those of a checkpoint over the seeds. So the store
should hold one study of one variant.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.errors import DataError
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

MODULES = ("tasks.curation.marketplace.wishes", "tasks.rl.phase")
ALL = "all"


def by_level(samples: Sequence[SampleResult]) -> dict[str, dict[str, float]]:
    """Return responses with a verdict and the share of them that solve, by level and over all.

    A request that sees what a model refuses is of no level.
    """
    groups: dict[int, list[bool]] = defaultdict(list)
    for one in samples:
        if one.scored and not one.request:
            groups[one.level].append(one.solved)
    named = {str(level): groups[level] for level in sorted(groups)}
    named[ALL] = [solved for group in groups.values() for solved in group]
    return {
        name: {"responses": len(group), "solved": sum(group) / len(group)}
        for name, group in named.items()
        if group
    }


def main(arguments: Sequence[str]) -> None:
    """Read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.levels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("command", help="that made the store")
    parser.add_argument("--out", type=Path, required=True, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    samples: dict[str, list[SampleResult]] = defaultdict(list)
    for path in sorted(options.store.glob(f"objects/*/{SAMPLES_FILE}")):
        name = json.loads((path.parent / "report.json").read_bytes())["model"]
        samples[name] += read_table(path, SampleResult)
    if not samples:
        raise DataError(f"{options.store} has no evaluation")
    models = {name: by_level(samples[name]) for name in sorted(samples)}
    content = {**evidence_file.origin(options.command, *MODULES), "models": models}
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
