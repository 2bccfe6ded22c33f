"""The notebook of the first evening to its end: `python -m tests.bench.evening tiny`.

The cells of docs/first_gpu_evening.ipynb run as one program in an empty folder. What they trained
and measured is read from the store that they leave: the models on the held-out problems, what
answers without a model earn there, the reward at both ends of the curve, and the gain of RL.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_schemas.reports import STEPS_FILE, GateDecision, StepReport, SuiteScore
from tasks.cores import num_cores
from tasks.errors import DataError
from tasks.formats.progression import PROGRESSION_FILE, read_progression
from tasks.lab.study import evidence_file
from tasks.platform.cache_version import ROOT
from tasks.platform.command_line import run
from tasks.provenance.lineage.registry import GATE_FILE
from tasks.store.files import write_bytes

NOTEBOOK = ROOT / "docs" / "first_gpu_evening.ipynb"
SIZES = ("tiny", "smollm2", "one_gpu")
ALL = "all"
MERGED = "merged"
ENDS = 4
"""The curve is compared at its ends, a quarter of the steps each."""
POLL_S = 1.0


def cells() -> list[str]:
    """Return the programs of the notebook, in order."""
    notebook = json.loads(NOTEBOOK.read_text())
    return ["".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code"]


def ends_of(rewards: Sequence[float]) -> dict[str, float]:
    """Return the number of steps in an end of the curve, at least 1, and the mean of both ends."""
    steps = max(1, len(rewards) // ENDS)
    first, last = statistics.fmean(rewards[:steps]), statistics.fmean(rewards[-steps:])
    return {"steps": len(rewards), "end": steps, "first": first, "last": last}


def read_store(store: Path) -> dict[str, Any]:
    """Read what one evening left in a store.

    Raises:
        DataError: it did not come to its gate, or the store has more than one run.
    """
    decision = GateDecision.model_validate_json(_only(store, GATE_FILE).read_bytes())
    reports = read_progression(_only(store, PROGRESSION_FILE).parent)
    lines = _only(store, STEPS_FILE).read_text().splitlines()
    steps = [StepReport.model_validate_json(line) for line in lines]
    (gain,) = [one for one in decision.comparisons if (ALL, MERGED) == (one.suite, one.parent)]
    return {
        "released": decision.released,
        "failed": decision.failed,
        "models": {
            one.model: _score(next(suite for suite in one.suites if ALL == suite.suite))
            for one in reports
            if not one.same_as
        },
        "baselines": {one.name: one.accuracy[ALL] for one in reports[-1].baselines},
        "reward": ends_of([one.metrics["reward/mean"] for one in steps]),
        "gain": gain.model_dump(include={"difference", "low", "high", "problems"}),
    }


def run_notebook(size: str, base: str, folder: Path) -> dict[str, float]:
    """Run the cells in a folder, and return what they took beside which load of the machine.

    Raises:
        DataError: a cell failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", "\n\n".join(cells())],
        cwd=folder,
        env=os.environ
        | {"EVENING_SIZE": size, "EVENING_BASE": base, "PYTHONPATH": str(ROOT)}
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    loads = [os.getloadavg()[0]]
    while process.poll() is None:
        time.sleep(POLL_S)
        loads.append(os.getloadavg()[0])
    if process.returncode:
        raise DataError(f"the notebook ended with {process.returncode} in {folder}")
    return {
        "clock_min": (time.perf_counter() - started) / 60,
        "cores": num_cores(),
        "load": statistics.fmean(loads),
    }


def main(arguments: Sequence[str]) -> None:
    """Run, read and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.evening",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--base", default="", help="folder of a model; '' = the shipped one")
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    base = str(Path(options.base).resolve()) if options.base else ""
    with tempfile.TemporaryDirectory() as folder:
        took = run_notebook(options.size, base, Path(folder))
        result = took | read_store(Path(folder) / "evening")
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    if options.out:
        words = [options.size, *(["--base", options.base] if options.base else [])]
        command = " ".join(["python -m tests.bench.evening", *words])
        origin = evidence_file.origin(command, "workflows.post_training")
        write_bytes(options.out, (json.dumps({**origin, **result}, indent=1) + "\n").encode())


def _score(suite: SuiteScore) -> dict[str, float]:
    return suite.model_dump(include={"problems", "samples", "accuracy", "low", "high"})


def _only(store: Path, name: str) -> Path:
    found = sorted(store.glob(f"objects/*/{name}"))
    if 1 != len(found):
        raise DataError(f"{store}: {len(found)} files {name}, not one")
    return found[0]


if __name__ == "__main__":
    run(main)
