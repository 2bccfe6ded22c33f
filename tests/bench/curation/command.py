"""Curate rows made of public ones, and time it: `python -m tests.bench.curation.command DATA`.

Every size runs in a process of its own, end to end: check, read, adapt, rules, verification of
demonstrations, duplicates, held-out suites, contamination, tables. CPU seconds are those of the
process and of all that it started; memory is what these processes have allocated together at the
peak, shared pages counted once, without mapped files, which the system takes back when it needs to.
With `--python`, datatrove and rensa remove duplicates from the same questions, in an environment of
their own (datatrove needs another xxhash):

    python3 -m venv .venv-curation
    .venv-curation/bin/pip install datatrove==0.10.1 rensa==0.5.0 nltk orjson regex spacy
    .venv-curation/bin/pip install tokenizers "xxhash<4"
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from data_schemas.rows import QUARANTINE, ItemKind
from data_schemas.settings import CurationSettings, Source
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.errors import DataError
from tasks.gym.table import score_batch
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tests.bench.curation.rows import write_rows

SIZES = (10_000, 100_000, 1_000_000)
_EVERY_S = 0.1
_ALLOCATED = ("Pss_Anon:", "Pss_Shmem:")
_OTHERS = Path(__file__).with_name("others.py")
_DUPLICATES = ("duplicate", "near_duplicate")


@dataclass(frozen=True, slots=True)
class Measured:
    """One tool on one number of rows."""

    name: str
    rows: int
    cpu_s: float
    wall_s: float
    peak_mb: float
    removed: frozenset[int]
    """Rows, from 0."""

    @property
    def rate(self) -> float:
        """Return rows per CPU second."""
        return self.rows / self.cpu_s


def measure(name: str, rows: int, command: Sequence[str], found: Path) -> Measured:
    """Run a command and measure it.

    Args:
        name: of the tool.
        rows: number of rows.
        command: writes the removed rows as JSON.
        found: where it writes them.

    Raises:
        DataError: it failed.
    """
    begun, peak = time.monotonic(), 0
    said = found.with_suffix(".log")  # a pipe that nobody reads would stop the tool
    with said.open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    while True:
        done, code, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        peak = max(peak, allocated_kb(process.pid))
        time.sleep(_EVERY_S)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        errors = said.read_text(errors="replace")[-500:]
        raise DataError(f"{name} on {rows} rows ended with {process.returncode}: {errors}")
    wall = time.monotonic() - begun
    removed = frozenset(json.loads(found.read_bytes()))
    return Measured(name, rows, usage.ru_utime + usage.ru_stime, wall, peak / 1024, removed)


def allocated_kb(pid: int) -> int:
    """Return the memory of a process and of all that it started; 0 of one that ended.

    A page that several of them share counts as one.
    """
    folder = Path(f"/proc/{pid}")
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
        started = [path.read_text().split() for path in folder.glob("task/*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    mine = sum(int(line.split()[1]) for line in lines if line.startswith(_ALLOCATED))
    return mine + sum(allocated_kb(int(child)) for children in started for child in children)


def remove_duplicates(path: Path, folder: Path) -> list[int]:
    """Curate a file, and return the rows whose problem was a duplicate."""
    raw, out = folder / "raw", folder / "curated"
    raw.mkdir()
    out.mkdir()
    settings = CurationSettings(
        sources=(Source(adapter="gsm8k", path=str(path)),),
        max_prompt_tokens=1024,
        max_response_tokens=32_768,
    )
    ingest(settings.sources, settings.seed, raw)
    curate(settings, raw, SHIPPED, out, score=score_batch)
    removed: list[int] = []
    with pq.ParquetFile(out / QUARANTINE) as table:
        for batch in table.iter_batches(columns=["key", "reason", "kind"]):
            removed += [
                int(row["key"].rpartition("/")[2])
                for row in batch.to_pylist()
                if row["reason"] in _DUPLICATES and row["kind"] == ItemKind.PROBLEM
            ]
    return removed


def bench(data: Path, sizes: Sequence[int], python: str, seed: int) -> Iterator[Measured]:
    """Measure every tool on every size, on the same rows.

    Raises:
        DataError: a tool failed.
    """
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path, found = Path(name) / "rows.jsonl", Path(name) / "removed.json"
            write_rows(data, size, seed, path)
            ours = [sys.executable, "-m", __spec__.name, str(path), "--found", str(found)]
            yield measure("curation", size, ours, found)
            for tool in ("rensa", "datatrove") if python else ():
                command = [python, str(_OTHERS), tool, str(path), str(found)]
                yield measure(tool, size, command, found)


def show(measured: Sequence[Measured]) -> Table:
    """Draw the table; rows that a tool alone removes or alone keeps are counted against ours."""
    table = Table("tool", "rows", "rows per CPU s", "CPU s", "wall s", "peak MB", "removed")
    table.add_column("only this one")
    table.add_column("only ours")
    ours = {one.rows: one.removed for one in measured if one.name == "curation"}
    for one in measured:
        other = ours[one.rows]
        table.add_row(
            *(one.name, f"{one.rows:,}", f"{one.rate:,.0f}", f"{one.cpu_s:.1f}"),
            *(f"{one.wall_s:.1f}", f"{one.peak_mb:,.0f}", f"{len(one.removed):,}"),
            *(f"{len(one.removed - other):,}", f"{len(other - one.removed):,}"),
        )
    return table


def main(arguments: Sequence[str]) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(prog="make bench-curation", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with gsm8k/train.jsonl")
    parser.add_argument("--sizes", type=positive, nargs="+", default=SIZES, help="rows")
    parser.add_argument("--python", default="", help="of an environment with datatrove and rensa")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)  # one file of rows
    asked = parser.parse_args(arguments)
    if asked.found:
        with tempfile.TemporaryDirectory() as folder:
            removed = remove_duplicates(asked.data, Path(folder))
        asked.found.write_text(json.dumps(removed))
        return
    console, measured = Console(), list[Measured]()
    try:
        for one in bench(asked.data, asked.sizes, asked.python, asked.seed):
            measured.append(one)
            if console.is_terminal:  # hours may pass until the table
                console.print(f"{one.name}, {one.rows:,} rows: {one.cpu_s:.0f} CPU s")
    finally:
        console.print(show(measured))  # after a failure, what was measured before it


if __name__ == "__main__":
    run(main)
