"""Speed of row lineage, as ratio to a plain scan of its tables, and of the audit's hashing.

python -m tests.bench.lineage --rows 1000000 --runs 1000 --mib 2048

Every run is a night: new rows are curated and graded, a phase of RL trains the model of the night
before on them, and the result is released. So the first row touches every release, and the last
release rests on every row.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from data_schemas.ledgers import GroupOutcome
from data_schemas.reports import LEDGER_FILE
from data_schemas.rows import GRADED, PROBLEMS
from data_schemas.settings import ReleaseSettings
from data_schemas.statements import Input, Output, Statement
from tasks.platform.command_line import positive, run
from tasks.provenance.lineage.statements import save_statement
from tasks.provenance.rows.find import by_row
from tasks.provenance.rows.index import open_index
from tasks.provenance.rows.influence import trace_model, trace_rows
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.manifest import MANIFEST, folder_manifest
from tests.bench.audit import build_object, measure_audit
from tests.records import filled

_ROLLOUTS = 8
Timed = tuple[str, float, float]
"""(what, seconds, seconds of the plain scan that would answer the same)"""
Result = TypeVar("Result")


def question(number: int) -> str:
    """Return what a row asks."""
    return f"A shop has {number} bags and sells 2. How many are left?"


def source_row(number: int) -> str:
    """Return the digest of a row."""
    return sha256_bytes(question(number).encode())


def build_store(store: Path, rows: int, runs: int) -> list[str]:
    """Write the synthetic store and return the statements of its releases, in order."""
    each = rows // runs
    model = _commit(store, "pretrain", [], {"model": {}})["model"]
    releases: list[str] = []
    for night in range(runs):
        numbers = range(night * each, (night + 1) * each)
        problems = _problems(numbers)
        curated = _commit(store, "curate", [], {"curated": {PROBLEMS: problems}})["curated"]
        graded = _commit(store, "grade", [curated], {"graded": {GRADED: problems}})["graded"]
        report = {LEDGER_FILE: _ledger(problems)}
        trained = _commit(store, "rl/retrain", [model, graded], {"model": {}, "report": report})
        model = trained["model"]
        facts = {"released": 1, "manifest_sha256": "0" * 64, "version": str(night)}
        releases.append(_commit(store, "release", [model], {"model": {}}, facts)["model"].statement)
    return releases


def scan(store: Path, digest: str) -> int:
    """Count the uses of a row by reading every table of the store."""
    found = 0
    for graded in (store / "objects").glob(f"*/{GRADED}"):
        known = pq.read_table(graded, columns=["id", "source_row"])
        items = known.filter(pc.field("source_row") == digest)["id"]
        for ledger in (store / "objects").glob(f"*/{LEDGER_FILE}") if len(items) else ():
            drawn = pq.read_table(ledger, columns=["problem_id", "advantage_mass"])
            found += len(drawn.filter(pc.field("problem_id").isin(items)))
    return found


def measure(store: Path, releases: Sequence[str], rows: int) -> list[Timed]:
    """Time the index and its answers."""
    uri, digest = str(store), source_row(0)
    plain, uses = _timed(lambda: scan(store, digest))
    built, _ = _timed(lambda: open_index(uri, store))
    opened, index = _timed(lambda: open_index(uri, store))
    graph, _ = _timed(lambda: index.graph)
    by_digest, trace = _timed(lambda: trace_rows(index, by_row(index, uri, digest), 5))
    by_text, said = _timed(lambda: trace_rows(index, by_row(index, uri, question(0)[:24]), 5))
    whole, (answer, _) = _timed(lambda: trace_model(index, releases[-1:], 5))
    assert (uses, len(trace.checkpoints)) == (len(trace.uses), 2 * len(releases))
    assert (trace.uses, answer.rows) == (said.uses, rows)
    return [
        ("plain scan for one row", plain, plain),
        ("build the index", built, plain),
        ("open the index", opened, plain),
        ("read the graph", graph, plain),
        ("trace a row by digest", by_digest, plain),
        ("trace a row by a part of its prompt", by_text, plain),
        ("all rows of the last release", whole, plain),
    ]


def main(arguments: Sequence[str]) -> None:
    """Build, measure, print; see --help."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.lineage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=positive, default=1_000_000, help="raw rows [1000000]")
    parser.add_argument("--runs", type=positive, default=1_000, help="nights [1000]")
    parser.add_argument("--mib", type=positive, default=2048, help="size of an object [2048]")
    given = parser.parse_args(arguments)
    rows = given.rows // given.runs * given.runs
    with TemporaryDirectory() as folder:
        store = Path(folder)
        releases = build_store(store, rows, given.runs)
        timed = measure(store, releases, rows)
    table = Table(title=f"{rows:,} rows, {given.runs:,} runs", title_justify="left", box=None)
    for head in ("", "seconds", "of a plain scan"):
        table.add_column(head, justify="right" if head else "left")
    for what, seconds, plain in timed:
        table.add_row(what, f"{seconds:.2f}", f"{seconds / plain:.2f}")
    audited = Table(title=f"{given.mib:,} MiB to audit", title_justify="left", box=None)
    for head in ("", "MiB/s", "of a plain read's speed"):
        audited.add_column(head, justify="right" if head else "left")
    with TemporaryDirectory() as folder:
        digest = build_object(Path(folder), given.mib)
        for what, seconds, plain in measure_audit(Path(folder), digest):
            audited.add_row(what, f"{given.mib / seconds:,.0f}", f"{plain / seconds:.2f}")
    Console(highlight=False).print(table, "", audited)


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _problems(numbers: range) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "id": [f"shop/{number}" for number in numbers],
            "messages": [f'[{{"content": "{question(number)}"}}]' for number in numbers],
            "source": ["shop"] * count,
            "source_row": [source_row(number) for number in numbers],
            "verifier": ["final_answer"] * count,
            "answer": ['"1"'] * count,
        }
    )


def _ledger(problems: pa.Table) -> pa.Table:
    count = len(problems)
    return pa.table(
        {
            "step": list(range(1, count + 1)),
            "problem_id": problems["id"],
            "outcome": [GroupOutcome.NON_ZERO_VARIANCE.value] * count,
            "rollouts": [_ROLLOUTS] * count,
            "trained_tokens": [100] * count,
            "advantage_mass": [1.0] * count,
        }
    )


def _commit(
    store: Path,
    stage: str,
    inputs: Sequence[Input],
    outputs: Mapping[str, Mapping[str, pa.Table]],
    facts: Mapping[str, float | int | str] | None = None,
) -> dict[str, Input]:
    """Write the objects and the statement of a stage, without syncing the disk."""
    made = [_object(store, stage, role, inputs, tables) for role, tables in outputs.items()]
    statement = filled(
        Statement,
        stage=stage,
        settings=canonical_json(ReleaseSettings()).decode(),
        code=("0" * 64,),
        environment="0" * 64,
        inputs=tuple(inputs),
        outputs=tuple(made),
        facts=dict(facts or {}),
    )
    digest = save_statement(str(store), statement)
    return {output.role: Input(**output.model_dump(), statement=digest) for output in made}


def _object(
    store: Path, stage: str, role: str, inputs: Sequence[Input], tables: Mapping[str, pa.Table]
) -> Output:
    with TemporaryDirectory(dir=store) as made:
        folder = Path(made)
        for name, table in tables.items():
            pq.write_table(table, folder / name, compression="zstd")
        if not tables:
            (folder / "weights").write_text(f"{stage} {[item.digest for item in inputs]}")
        manifest = folder_manifest(folder)
        (folder / MANIFEST).write_bytes(manifest)
        digest = sha256_bytes(manifest)
        target = store / "objects" / digest[:16]
        target.parent.mkdir(exist_ok=True)
        folder.rename(target)
        folder.mkdir()
    return Output(role=role, uri=str(target), digest=digest)


if __name__ == "__main__":
    run(main)
