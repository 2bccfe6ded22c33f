"""The rows and uses that one statement tells of, read from its objects.

    rows    what became of every item of a curated or graded set, and what people decided
    uses    what a fine-tuning or a phase of RL did with every item, per step
    places  in which file a raw row lies
    files   the raw files of an ingestion

Every file is checked against the manifest of its object, and the manifest against the statement:
what was changed after commit is not indexed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data_schemas.ledgers import GroupOutcome
from data_schemas.reports import LEDGER_FILE
from data_schemas.rows import (
    DECISIONS,
    DEMONSTRATIONS,
    GRADED,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    ROWS,
    USES_FILE,
    Parent,
)
from data_schemas.sources import RAW_FILES
from data_schemas.statements import Input, Output, Statement
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.tombstones import is_buried
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files

WORD = pa.dictionary(pa.int32(), pa.string())
"""Text of which few values occur."""
SCHEMAS: dict[str, pa.Schema] = {
    "rows": pa.schema(
        {
            "artifact": WORD,
            "kind": WORD,
            "item": pa.string(),
            "source_row": pa.string(),
            "source": WORD,
            "verifier": WORD,
            "reason": WORD,
            "detail": pa.string(),
        }
    ),
    "uses": pa.schema(
        {
            "statement": WORD,
            "step": pa.int64(),
            "item": pa.string(),
            "source_row": pa.string(),
            "source": WORD,
            "verifier": WORD,
            "outcome": WORD,
            "times": pa.int64(),
            "tokens": pa.int64(),
            "advantage": pa.float64(),
        }
    ),
    "places": pa.schema({"source_row": pa.string(), "file": WORD, "number": pa.int64()}),
    "files": pa.schema({"artifact": WORD, "source": WORD, "uri": pa.string(), "file": WORD}),
}
"""The tables of the index. `uses.times` counts rollouts, or epochs of fine-tuning."""
TRAINED, VALIDATED = "demonstration", "validation"
"""Outcomes of a demonstration; those of a prompt in RL are data_schemas.ledgers.GroupOutcome."""
KINDS = {PROBLEMS: "problem", DEMONSTRATIONS: "demonstration", HELD_OUT: "held out"}
"""Table of a curated set -> what its items are."""
IS_TRAINED = (pc.field("tokens") > 0) | pc.field("outcome").cast(pa.string()).isin(
    [TRAINED, GroupOutcome.ZERO_VARIANCE_TRAINED.value]
)
"""Selects the uses that changed weights, which no other use does.

A group trained by RL-ZVP counts even where all its advantages are 0, as a KL penalty applies.
"""
Tables = dict[str, list[pa.Table]]


class Object:
    """An artifact of the store, whose files are verified as they are read.

    Raises:
        DataError: it is gone.
        TamperError: its manifest is not the recorded one.
    """

    def __init__(self, store: str, item: Input | Output) -> None:
        self.digest = item.digest
        self._place = store_at(origins.object_uri(store, item.uri, item.digest))
        manifest = self._place.read_bytes(MANIFEST)
        if sha256_bytes(manifest) != item.digest:
            raise TamperError(f"{self._place.uri}/{MANIFEST}: sha256 is not {item.digest}")
        self._files = manifest_files(manifest, self._place.uri)

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def read(self, name: str, columns: Collection[str]) -> pa.Table:
        """Read columns of a parquet file.

        Raises:
            DataError: it is gone, or is not such a table.
            TamperError: it was changed.
        """
        payload = self._place.read_bytes(name)
        if sha256_bytes(payload) != self._files[name]:
            raise TamperError(f"{self._place.uri}/{name}: sha256 is not {self._files[name]}")
        try:
            with pq.ParquetFile(pa.BufferReader(payload)) as file:
                missing = set(columns) - set(file.schema_arrow.names)
                if missing:
                    raise DataError(
                        f"{self._place.uri}/{name} lacks {', '.join(sorted(missing))}; another "
                        "version wrote it, and this one cannot index it"
                    )
                return file.read(columns=list(columns))
        except pa.ArrowException as error:
            raise DataError(f"{self._place.uri}/{name} is not a table: {error}") from error

    def raw_files(self) -> pa.Table:
        """Return the table `files` of an ingestion; without rows if it is another object."""
        listed = origins.read_raw_files(self._place.uri)
        return fill(
            "files",
            pa.table(
                {
                    "source": [file.adapter for file in listed],
                    "uri": [origins.raw_name(self.digest, file) for file in listed],
                    "file": [file.sha256 for file in listed],
                }
            ),
            artifact=self.digest,
        )


def fill(name: str, table: pa.Table, **constants: str | int | float) -> pa.Table:
    """Complete a table to the schema of the index: constants, and '' or 0 for what it lacks."""
    schema = SCHEMAS[name]
    columns: list[pa.Array | pa.ChunkedArray] = []
    for column in schema:
        if column.name in table.column_names and column.name not in constants:
            columns.append(table[column.name].cast(column.type))
            continue
        is_text = column.type in (WORD, pa.string())
        value = constants.get(column.name, "" if is_text else 0)
        kind = pa.string() if is_text else column.type
        columns.append(pa.repeat(pa.scalar(value, kind), len(table)).cast(column.type))
    return pa.table(columns, schema=schema)


def tables_of(store: str, digest: str, statement: Statement, indexed: Set[str]) -> Tables:
    """Return what a statement adds to every table of the index.

    Args:
        store: absolute uri.
        digest: of the statement.
        statement: of a stage.
        indexed: digests of the artifacts whose rows and files are indexed.

    Raises:
        DataError: one of its objects is gone or of another version.
        TamperError: one of them was changed.
    """
    artifacts = list(_open_outputs(store, statement))
    results: Tables = {name: [] for name in SCHEMAS}
    for artifact in artifacts:
        if artifact.digest in indexed:
            continue
        results["rows"] += _rows(artifact)
        if ROWS in artifact:
            table = artifact.read(ROWS, ["source_row", "file", "number"])
            results["places"].append(fill("places", table))
        if RAW_FILES in artifact:
            results["files"].append(artifact.raw_files())
    for report in artifacts:
        if LEDGER_FILE in report:
            results["uses"].append(_prompts(store, digest, statement, report))
    if statement.stage.startswith("sft/"):
        results["uses"].append(_demonstrations(store, digest, statement, artifacts))
    return results


def _open_outputs(store: str, statement: Statement) -> Iterator[Object]:
    """Yield what a stage made, without models that were deleted on purpose: they have no rows."""
    for output in statement.outputs:
        try:
            yield Object(store, output)
        except TamperError:
            raise
        except DataError:
            if not is_buried(store, output.digest):
                raise


def among(column: str, values: Iterable[str]) -> pc.Expression:
    """Select the rows with one of these values."""
    return pc.field(column).cast(pa.string()).isin(pa.array(list(values), pa.string()))


def _is_of(parent: str) -> pc.Expression:
    """Select the demonstrations that a fine-tuning learns from."""
    if parent == Parent.GENERAL:
        return pc.field("parent") != Parent.JUDGE.value
    return pc.field("parent") == parent


def _rows(artifact: Object) -> Iterator[pa.Table]:
    """Yield the items of a curated set, and the refusals of a curated or graded one."""
    columns = {"item": "id", "source_row": "source_row", "source": "source"}
    for file, kind in KINDS.items():
        if file in artifact:
            more = {} if file == DEMONSTRATIONS else {"verifier": "verifier"}
            yield fill(
                "rows",
                _renamed(artifact, file, columns | more),
                artifact=artifact.digest,
                kind=kind,
            )
    if QUARANTINE in artifact:
        columns = {"item": "key"} | {n: n for n in ("source_row", "source", "reason", "detail")}
        columns["kind"] = "kind"
        yield fill("rows", _renamed(artifact, QUARANTINE, columns), artifact=artifact.digest)
    if DECISIONS in artifact:
        yield fill("rows", _decisions(artifact), artifact=artifact.digest, kind="decision")


def _decisions(artifact: Object) -> pa.Table:
    """Return what people decided about gold answers, with who and when as the detail."""
    columns = {"item": "problem", "reason": "decision"}
    more = ("source_row", "source", "gold", "correction", "by", "at")
    table = _renamed(artifact, DECISIONS, columns | _same(*more))
    details = [
        f"by {row['by']} at {row['at']}: {row['gold']}"
        + (f" became {row['correction']}" if row["correction"] else "")
        for row in table.to_pylist()
    ]
    return table.append_column("detail", pa.array(details, pa.string()))


def _prompts(store: str, digest: str, statement: Statement, report: Object) -> pa.Table:
    """Return what a phase of RL did with its prompts: its ledger, with the rows behind them."""
    problems = _input_with(store, statement, GRADED)
    rows = _renamed(problems, GRADED, {"item": "id", **_same("source_row", "source", "verifier")})
    columns = {"item": "problem_id", "times": "rollouts", "tokens": "trained_tokens"}
    columns |= {"advantage": "advantage_mass", **_same("step", "outcome")}
    draws = _renamed(report, LEDGER_FILE, columns)
    joined = draws.join(rows, "item", join_type="left outer")
    if joined["source_row"].null_count:
        raise DataError(
            f"the ledger of {statement.stage} ({digest}) names prompts that it was not given"
        )
    return fill("uses", joined, statement=digest)


def _demonstrations(
    store: str, digest: str, statement: Statement, outputs: Iterable[Object]
) -> pa.Table:
    """Return which demonstrations a fine-tuning was trained on, and which chose its checkpoint.

    Without a record of it, every demonstration of its parent counts as trained.
    """
    dataset = _input_with(store, statement, DEMONSTRATIONS)
    names = {"item": "id", "parent": "parent", **_same("source_row", "source")}
    rows = _renamed(dataset, DEMONSTRATIONS, names)
    report = next((one for one in outputs if USES_FILE in one), None)
    if report is None:
        own = rows.filter(_is_of(statement.stage.removeprefix("sft/")))
        epochs = int(statement.facts["chosen_epoch"])
        return fill("uses", own, statement=digest, outcome=TRAINED, times=epochs)
    used = _renamed(report, USES_FILE, {"item": "id", "times": "epochs"})
    joined = used.join(rows, "item")
    return pa.concat_tables(
        fill("uses", joined.filter(condition), statement=digest, outcome=outcome)
        for outcome, condition in (
            (TRAINED, pc.field("times") > 0),
            (VALIDATED, pc.field("times") == 0),
        )
    )


def _input_with(store: str, statement: Statement, file: str) -> Object:
    for item in statement.inputs:
        if item.statement and file in (artifact := Object(store, item)):
            return artifact
    raise DataError(f"no input of {statement.stage} holds {file}; it is of another version")


def _renamed(artifact: Object, file: str, names: Mapping[str, str]) -> pa.Table:
    table = artifact.read(file, [*names.values()])
    return pa.table({name: table[column] for name, column in names.items()})


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}
