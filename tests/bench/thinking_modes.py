"""What every model of a run solves in each mode of thinking, in how many tokens; whether it obeys.

    eachprompt run --settings example:hybrid_quick --store STORE
    python -m tests.bench.thinking_modes STORE "eachprompt run --settings example:hybrid_quick" \\
        --out tests/bench/thinking_modes.json

It reads the evaluations in the store, which should be those of one run.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.curation.sample_hybrid import SWITCHES
from tasks.errors import DataError
from tasks.formats.progression import PROGRESSION_FILE, read_progression
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

MODULE = "tasks.curation.sample_hybrid"
Shares = Mapping[str, float]


def measure(samples: Sequence[SampleResult]) -> dict[str, Shares]:
    """Measure the answers of a model by mode: solved, tokens, and thoughts that are empty."""
    found = dict[str, Shares]()
    for mode in SWITCHES:
        mine = [one for one in samples if one.source == mode]
        if mine:
            found[mode] = {
                "responses": len(mine),
                "solved": sum(one.solved for one in mine) / len(mine),
                "tokens": sum(one.tokens for one in mine) / len(mine),
                "empty": sum(not thought(one.text) for one in mine) / len(mine),
            }
    return found


def thought(response: str) -> str:
    """Return the thought of a response; '' without one."""
    return response.partition("<think>")[2].partition("</think>")[0].strip()


def main(arguments: Sequence[str]) -> None:
    """Read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.thinking_modes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("command", help="that made the store")
    parser.add_argument("--out", type=Path, required=True, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    (progression, *more) = [*options.store.glob(f"objects/*/{PROGRESSION_FILE}")] or [None]
    if progression is None or more:
        raise DataError(f"{options.store} should hold one run of a preset with both modes")
    folders = {
        json.loads(path.read_bytes())["model"]: path.parent
        for path in options.store.glob("objects/*/report.json")
        if (path.parent / SAMPLES_FILE).is_file()
    }
    models = {
        one.model: measure(read_table(folders[one.model] / SAMPLES_FILE, SampleResult))
        for one in read_progression(progression.parent)
    }
    content = {**evidence_file.origin(options.command, MODULE), "models": models}
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
