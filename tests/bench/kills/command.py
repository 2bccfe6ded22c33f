"""Kill and stop the whole pipeline in every stage, start it again, and compare what it releases.

    python -m tests.bench.kills.command --folder KEPT --chains 6

A chain is the pipeline at its smallest (tests/tiny_chain.py) on a store of its own. In every stage
it is stopped once and killed once, at seeded places, and started again each time; at the end, the
digests of its weights and of its release must be those of a chain that nobody disturbed, and the
audit must prove it with the key. Processes are forked from one that has imported the packages, and
workers of a killed one are left to end by themselves, as on a real machine.

What is finished is kept in the folder: the command goes on where it was interrupted.
"""

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from tasks.errors import DataError
from tasks.lab.study import evidence_file
from tasks.platform.command_line import positive, run
from tasks.platform.tables import markdown_table
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, public_path, read_public_keys
from tasks.store.files import sha256_file
from tasks.store.location import tracking_uri
from tasks.store.manifest import MANIFEST
from tests import tiny_chain
from tests.bench.kills.points import Extent, Harm, Watch, draw, over

SEED = 0
PAUSE_S = 1.0
"""How long a stopped process stands still."""
PATIENCE_S = 900.0
"""Longest wait for the end of one process; a chain that takes longer hangs."""
INPUTS, WHOLE, RESULTS = "inputs", "whole", "chains.jsonl"
"""In the folder that is kept."""
JOURNAL, ENDING, LOG = "points.jsonl", "ending.json", "log"
"""In the folder of a chain."""
PAGE = Path(__file__).with_name("RESULTS.md")
HEAD = """# Killed and stopped in every stage

Written by `make bench-kills`. A point is a SIGKILL or a SIGSTOP of the whole pipeline at a seeded
operation or moment of a stage; "same end" counts the points of chains whose weights and release
object have the digests of the chain that nobody disturbed, and which the audit proves with the key.
"""
PACKAGES = (
    "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.store.model_registry.sqlalchemy_store",
    "transformers.models.qwen3_moe.modeling_qwen3_moe",
    "pyarrow.parquet",
)
"""Imported before any process is forked: importing them takes longer than most stages."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a chain released."""

    weights: str
    release: str
    """Digest of the object: weights, manifest, card."""
    proved: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A disturbed chain, to its end."""

    number: int
    starts: int
    points: list[dict[str, object]]
    ending: Ending | None
    """None if it did not end."""
    error: str = ""


def start(folder: Path, job: Callable[[], object]) -> int:
    """Run a job of a chain in a forked process until it ends or is killed.

    Returns:
        Exit code; negative for a signal.
    """
    process = os.fork()
    if process == 0:
        _run_forked(folder / LOG, job)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found, status = os.waitpid(process, os.WUNTRACED | os.WNOHANG)
        if found == 0:
            if time.monotonic() > deadline:
                os.kill(process, signal.SIGTERM)
                deadline += PAUSE_S
            time.sleep(0.02)
        elif os.WIFSTOPPED(status):
            time.sleep(PAUSE_S)
            ends = over(folder / JOURNAL)[-1]["harm"] == Harm.STOP_KILL
            os.kill(process, signal.SIGKILL if ends else signal.SIGCONT)
        else:
            return os.waitstatus_to_exitcode(status)


def _run_forked(log: Path, job: Callable[[], object]) -> None:
    """Run a job in this process, which ends; its group is its own."""
    os.setsid()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(handle, number)
    tempfile.tempdir = None  # as the environment of the chain says
    code = 1
    try:
        job()
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_chain(folder: Path, inputs: Path, watch: Watch, extents: Path | None = None) -> None:
    """Run a chain in this process.

    Args:
        folder: of the chain.
        inputs: rows and model of all chains.
        watch: counts, and harms.
        extents: file for the operations and seconds of its stages.
    """
    tiny_chain.run(tiny_chain.settings(inputs), folder)
    watch.close()
    if extents is not None:
        found = {
            name: {"operations": count, "seconds": watch.seconds[name]}
            for name, count in watch.operations.items()
        }
        extents.write_text(json.dumps(found))


def ending(folder: Path) -> Ending:
    """Read and audit what a chain released, in a process of its own.

    Raises:
        DataError: it cannot be read.
    """
    code = start(folder, lambda: _write_ending(folder))
    if code:
        raise DataError(f"{folder}: {_last_line(folder)}")
    return Ending(**json.loads((folder / ENDING).read_text()))


def _write_ending(folder: Path) -> None:
    store = str(folder / "runs")
    tracking = tracking_uri(store, "")
    report = audit(tiny_chain.MODEL, tracking, store, read_public_keys(public_path()))
    model = Lookup(tracking).version(tiny_chain.MODEL).model
    assert model is not None
    found = Path(model.tags["uri"])
    kept = Ending(
        weights=sha256_file(found / "model.safetensors"),
        release=sha256_file(found / MANIFEST),
        proved=report.proved,
    )
    (folder / ENDING).write_text(json.dumps(asdict(kept)))
    for finding in report.findings:
        sys.stdout.write(f"{finding}\n")


def _last_line(folder: Path) -> str:
    return (folder / LOG).read_text(errors="replace").strip().rpartition("\n")[2]


def whole(folder: Path, migrated: Path) -> tuple[dict[str, Extent], Ending]:
    """Run the chain that nobody disturbs, once; how far its stages reach, and what it releases."""
    own, extents = folder / WHOLE, folder / "extents.json"
    if not extents.exists():
        _empty(own, migrated)
        code = start(
            own, lambda: run_chain(own, folder / INPUTS, Watch(own / JOURNAL, {}), extents)
        )
        assert code == 0, (own / LOG).read_text()
    found = json.loads(extents.read_text())
    return {name: Extent(**one) for name, one in found.items()}, ending(own)


def disturb(number: int, folder: Path, migrated: Path, extents: Mapping[str, Extent]) -> Chain:
    """Run a chain from one point to the next until it ends."""
    own = folder / f"chain-{number}"
    _empty(own, migrated)
    points = list(enumerate(draw(extents, number, SEED)))

    def attempt() -> None:
        left = points[len(over(own / JOURNAL)) :]
        run_chain(own, folder / INPUTS, Watch(own / JOURNAL, extents, left))

    starts, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL and starts <= len(points):
        starts += 1
        code = start(own, attempt)
    lines = over(own / JOURNAL)
    if code:
        return Chain(number, starts, lines, None, f"exit code {code}: {_last_line(own)}")
    return Chain(number, starts, lines, ending(own))


def _empty(own: Path, migrated: Path) -> None:
    """Make the folder of a chain anew, with an empty MLflow: its migrations take longest."""
    shutil.rmtree(own, ignore_errors=True)
    (own / "runs").mkdir(parents=True)
    shutil.copy(migrated, own / "runs" / "mlflow.db")


def read(folder: Path) -> list[Chain]:
    """Read the chains that have ended."""
    path = folder / RESULTS
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [Chain(**one | {"ending": one["ending"] and Ending(**one["ending"])}) for one in found]


def page(chains: Iterable[Chain], whole: Ending) -> str:
    """Return the table: per stage the points of each kind, and in chains that ended the same."""
    points: dict[str, Counter[str]] = defaultdict(Counter)
    chains = list(chains)
    for chain in chains:
        same = chain.ending == whole
        for point in chain.points:
            of_stage = points[str(point["stage"])]
            if point["what"] == "missed":
                of_stage["missed"] += 1
                continue
            of_stage[str(point["harm"])] += 1
            of_stage["in time" if point["timed"] else "before an operation"] += 1
            of_stage["n"] += 1
            of_stage["same"] += same
    heads = (*Harm, "before an operation", "in time", "n", "same")
    total = sum(points.values(), Counter())
    lines = [
        (stage, *(str(count[head]) for head in heads))
        for stage, count in [*points.items(), ("all", total)]
    ]
    ended = [chain.ending for chain in chains]
    said = [
        f"{len(chains)} chains, {sum(chain.starts for chain in chains)} processes; commit "
        f"{evidence_file.commit()}.",
        f"Weights as undisturbed: {_share(ended, whole, 'weights')}; release object as "
        f"undisturbed: {_share(ended, whole, 'release')}; proved with the key: "
        f"{_share(ended, whole, 'proved')}.",
        f"{total['missed']} drawn points were not reached: less was left to do after the kill "
        "before.",
    ]
    errors = [f"- chain {chain.number}: {chain.error}" for chain in chains if chain.error]
    header = ("stage", "killed", "stopped", "stopped, then killed", *heads[3:5], "n", "same end")
    return "\n".join([HEAD, "", markdown_table(header, lines), "", *said, *errors]) + "\n"


def _share(ended: Sequence[Ending | None], whole: Ending, name: str) -> str:
    equal = sum(one is not None and getattr(one, name) == getattr(whole, name) for one in ended)
    return f"{equal} of {len(ended)}"


def main(arguments: Sequence[str]) -> None:
    """Disturb chains, compare, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.kills.command",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", type=Path, required=True, help="kept: where it goes on")
    parser.add_argument("--chains", type=positive, default=6)
    parser.add_argument("--out", type=Path, default=PAGE, help="page with the table")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[KEY_VARIABLE] = str(folder / "key.pem")
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    torch.set_num_threads(1)
    for package in PACKAGES:
        importlib.import_module(package)
    if not (folder / INPUTS).exists():
        tiny_chain.prepare(folder / INPUTS)
    migrated = folder / "mlflow.db"
    if not migrated.exists():
        code = start(folder, lambda: connect(f"sqlite:///{migrated}").search_experiments())
        assert code == 0, (folder / LOG).read_text()
    extents, undisturbed = whole(folder, migrated)
    ended = {chain.number for chain in read(folder)}
    for number in range(options.chains):
        if number in ended:
            continue
        chain = disturb(number, folder, migrated, extents)
        with (folder / RESULTS).open("a") as file:
            file.write(json.dumps(asdict(chain)) + "\n")
        if chain.ending == undisturbed:
            with suppress(OSError):
                shutil.rmtree(folder / f"chain-{number}")
        options.out.write_text(page(read(folder), undisturbed))


if __name__ == "__main__":
    run(main)
