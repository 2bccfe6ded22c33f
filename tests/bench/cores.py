"""The whole default run on one core and on all, in turns: `python -m tests.bench.cores --rounds 2`.

Every run has an empty store, a process of its own and EACHPROMPT_CORES, and trains from the same
seed. The weights that the runs release must have one digest: no byte may depend on the number of
cores. Of the seconds by the clock the serial share follows (Amdahl's law), and from it what more
cores would take; that is an extrapolation, not a measurement.
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
from dataclasses import asdict, dataclass
from pathlib import Path

from tasks.cores import LIMIT, num_cores
from tasks.errors import DataError
from tasks.lab.study import evidence_file
from tasks.platform.command_line import positive, run
from tasks.provenance.lineage.lookup import Lookup
from tasks.store.files import sha256_file, write_bytes
from tasks.store.location import tracking_uri

MODEL = "models:/eachprompt-tiny@released"
PREDICTED = 8
"""Cores of a laptop."""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run from raw rows to a released model."""

    cores: int
    clock_s: float
    cpu_s: float
    """CPU seconds of the process and of all that it started."""
    weights: str
    """Digest of what was released."""


def serial_share(one_s: float, many_s: float, cores: int) -> float:
    """Solve Amdahl's law, `many = one * (share + (1 - share) / cores)`, for the serial share.

    Args:
        one_s: seconds on one core.
        many_s: seconds on all.
        cores: all of them, at least 2.

    Returns:
        1 where more cores gain nothing, 0 where they divide the time; outside of these limits if
        the measurement is.
    """
    return (many_s / one_s - 1 / cores) / (1 - 1 / cores)


def seconds_on(cores: int, one_s: float, share: float) -> float:
    """Return what a run with this serial share takes on so many cores."""
    return one_s * (share + (1 - share) / cores)


def time_run(cores: int, arguments: Sequence[str]) -> TimedRun:
    """Run the pipeline in an empty store.

    Raises:
        DataError: it failed.
    """
    with tempfile.TemporaryDirectory() as store:
        command = (
            *(sys.executable, "-m", "tasks.platform.console", "run", "--store", store),
            *arguments,
        )
        log, started = Path(store) / "log", time.perf_counter()
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, env=os.environ | {LIMIT: str(cores)}, stdout=file, stderr=file
            )
            _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        clock_s = time.perf_counter() - started
        if process.returncode:
            raise DataError(f"{' '.join(command)}: {log.read_text(errors='replace')[-800:]}")
        model = Lookup(tracking_uri(store, "")).version(MODEL).model
        if model is None:
            raise DataError(f"{store}: nothing was released")
        weights = sha256_file(Path(model.tags["uri"].removeprefix("file://")) / "model.safetensors")
    return TimedRun(cores, clock_s, usage.ru_utime + usage.ru_stime, weights)


def summary(runs: Sequence[TimedRun]) -> dict[str, object]:
    """Compare the runs.

    Raises:
        DataError: the digests of their weights differ.
    """
    digests = {one.weights for one in runs}
    if len(digests) > 1:
        raise DataError(f"the weights depend on the number of cores: {sorted(digests)}")
    most = max(one.cores for one in runs)
    one_s, many_s = ([one.clock_s for one in runs if one.cores == count] for count in (1, most))
    ratios = sorted(many / one for one, many in zip(one_s, many_s, strict=True))
    share = serial_share(statistics.median(one_s), statistics.median(many_s), most)
    predicted = seconds_on(PREDICTED, 1.0, share)
    return {
        "cores": most,
        "rounds": len(ratios),
        "ratio": statistics.median(ratios),
        "low": ratios[0],
        "high": ratios[-1],
        "serial_share": share,
        "predicted_cores": PREDICTED,
        "predicted_ratio": predicted,
        "digest": digests.pop(),
        "runs": [asdict(one) for one in runs],
    }


def main(arguments: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.cores",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    parser.add_argument("run", nargs="*", help="arguments of `eachprompt run`, after --")
    options = parser.parse_args(arguments)
    most, runs = num_cores(), list[TimedRun]()
    if most == 1:
        raise DataError("this process may use one core, so there is nothing to compare")
    for _ in range(options.rounds):
        for cores in (1, most):
            runs.append(time_run(cores, options.run))
            sys.stdout.write(
                f"{cores} cores: {runs[-1].clock_s:.0f} s, {runs[-1].cpu_s:.0f} CPU s, weights "
                f"{runs[-1].weights[:12]}\n"
            )
            sys.stdout.flush()
    result = summary(runs)
    sys.stdout.write(
        f"{most} cores take {result['ratio']:.2f} of the time of one; {PREDICTED} would take "
        f"{result['predicted_ratio']:.2f}\n"
    )
    if options.out:
        command = f"python -m tests.bench.cores --rounds {options.rounds}"
        origin = evidence_file.origin(command, "tasks.engines.part_workers", "tasks.rl.phase")
        write_bytes(options.out, (json.dumps({**origin, **result}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
