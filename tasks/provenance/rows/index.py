"""The index: all that the statements of a store tell of rows, in a few sorted tables."""

import json
import logging
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data_schemas.reports import LEDGER_FILE
from data_schemas.rollouts import GroupOutcome
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
from data_schemas.statements import Input, Made, Output, Statement
from tasks.errors import DataError, SettingsError, TamperError
from tasks.platform.progress import progress
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.provenance.lineage.statements import is_buried, load_statement
from tasks.store.files import canonical_json, sha256_bytes, staged_folder, write_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, folder_manifest, manifest_files

# The rows and uses that one statement tells of, read from its objects.
#
#     rows    what became of every item of a curated or graded set, and what people decided
#     uses    what a fine-tuning or a phase of RL did with every item, per step
#     places  in which file a raw row lies
#     files   the raw files of an ingestion
#
# Every file is checked against the manifest of its object, and the manifest against the statement:
# what was changed after commit is not indexed.

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
"""Outcomes of a demonstration; those of a prompt in RL are data_schemas.rollouts.GroupOutcome."""
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


# Which model was made from which: the statements of a store as a graph of checkpoints.
#
# A checkpoint is an output with the role `model`. What a stage learned reaches another stage only
# with such an output: reports, curated sets and evaluations carry no weights.

MODEL = "model"
"""Role of a checkpoint among the outputs of its stage."""
SHORTEST_PREFIX = 8
"""Characters of a digest that a person has to type."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The statements of a store, and how checkpoints follow from each other."""

    statements: Mapping[str, Statement]
    """By digest."""
    _next: Mapping[str, list[str]] = field(init=False)
    _before: Mapping[str, list[str]] = field(init=False)
    _place: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        before: dict[str, list[str]] = {}
        after: dict[str, list[str]] = defaultdict(list)
        for digest, statement in self.statements.items():
            if checkpoint_of(statement) is None:
                continue
            before[digest] = [
                item.statement
                for item in statement.inputs
                if item.statement in self.statements
                and item.digest == _digest(self.statements[item.statement])
            ]
            for producer in before[digest]:
                after[producer].append(digest)
        object.__setattr__(self, "_before", before)
        object.__setattr__(self, "_next", after)
        object.__setattr__(self, "_place", _places(self.statements))

    def made_from(self, roots: Iterable[str]) -> list[str]:
        """List the statements of all checkpoints that follow from these, themselves included."""
        return self._reach(roots, self._next)

    def made_of(self, roots: Iterable[str]) -> list[str]:
        """List the statements of all checkpoints that led to these, themselves included."""
        return self._reach(roots, self._before)

    def behind(self, roots: Iterable[str]) -> list[str]:
        """List every statement that led to these: data, reports and evaluations as well."""
        inputs = {
            digest: [item.statement for item in statement.inputs]
            for digest, statement in self.statements.items()
        }
        return self._reach(roots, inputs)

    def find(self, digest: str) -> list[str]:
        """Find the statements that made a checkpoint, by its digest or by that of a statement.

        Args:
            digest: the whole of it, or its first characters.

        Raises:
            SettingsError: it names no checkpoint, or several.
        """
        checkpoints = {
            name: checkpoint.digest
            for name, statement in self.statements.items()
            if (checkpoint := checkpoint_of(statement))
        }
        results = [name for name in checkpoints if _begins(digest, name, checkpoints[name])]
        if not results:
            raise SettingsError(
                f"--model {digest!r} is no checkpoint of this store. Use models:/NAME@released, or "
                f"at least {SHORTEST_PREFIX} characters of the digest of a checkpoint."
            )
        if len({checkpoints[name] for name in results}) > 1:
            raise SettingsError(
                f"--model {digest!r} begins the digests of {len(results)} checkpoints; type more"
            )
        return results

    def describe(self, digest: str) -> Made:
        """Describe the checkpoint of a statement."""
        statement = self.statements[digest]
        is_release = {"manifest_sha256", "released"} <= statement.facts.keys()
        return Made(
            stage=statement.stage,
            statement=digest,
            checkpoint=_digest(statement),
            release=str(json.loads(statement.settings)["name"]) if is_release else "",
            version=str(statement.facts.get("version", "")) if is_release else "",
            passed=bool(statement.facts["released"]) if is_release else False,
        )

    def describe_all(self, digests: Iterable[str]) -> tuple[Made, ...]:
        return tuple(self.describe(digest) for digest in digests)

    def _reach(self, roots: Iterable[str], edges: Mapping[str, list[str]]) -> list[str]:
        # Not recursive: a model that was retrained every night has a very long chain.
        results: dict[str, None] = {}
        waiting = [root for root in roots if root in self.statements]
        while waiting:
            current = waiting.pop()
            if current not in results and current in self.statements:
                results[current] = None
                waiting += edges.get(current, [])
        return self.in_order(results)

    def in_order(self, digests: Iterable[str]) -> list[str]:
        """Sort statements, each after those that it follows from."""
        return sorted(digests, key=self._place.__getitem__)


def checkpoint_of(statement: Statement) -> Output | None:
    """Return the model that a stage made; None if it made none."""
    return next((output for output in statement.outputs if output.role == MODEL), None)


def _digest(statement: Statement) -> str:
    output = checkpoint_of(statement)
    return output.digest if output else ""


def _begins(text: str, *digests: str) -> bool:
    return len(text) >= SHORTEST_PREFIX and any(digest.startswith(text) for digest in digests)


def _places(statements: Mapping[str, Statement]) -> dict[str, int]:
    """Number statements, each after its producers."""
    numbers: dict[str, int] = {}
    waiting = [*statements][::-1]
    # Not recursive: a model that was retrained every night has a very long chain.
    while waiting:
        current = waiting[-1]
        producers = [item.statement for item in statements[current].inputs]
        missing = [one for one in producers if one in statements and one not in numbers]
        if missing and current not in numbers:
            waiting += missing
        else:
            numbers.setdefault(waiting.pop(), len(numbers))
    return numbers


# The index: all that the statements of a store tell of rows, in a few sorted tables.
#
#     <store>/index/<name>/   statements, rows, uses, places, files: parquet; MANIFEST.json
#
# The name follows from the digests of all statements, so an index that is older than the store is
# noticed by its name. A new index takes over what an older one knows, and reads the new statements
# and their objects, each checked against its digest. An index that was damaged, or that knows a
# statement which is no longer there, is not used; nor is one that this run's key, or one that it
# trusts, did not sign. It is no evidence: `audit` proves what it was made from.
#
# For a store in S3 the index is on the local disk.

logger = logging.getLogger(__name__)

_KIND = "index"
_VERSION = 1
"""Of the layout; part of the name."""
_ROW_GROUP = 2**16
"""Tables are sorted by raw row, so that a lookup by row reads one row group of each."""
_KEPT = 2
"""Indexes on disk: another process may be reading the one before."""
STATEMENTS = "statements"
SIGNATURE = "SIGNATURE.json"
_SCHEMA = pa.schema({"digest": pa.string(), "payload": pa.string()})


@dataclass(frozen=True)
class Index:
    """An index that was checked, or one in memory where nothing can be written."""

    source: Path | dict[str, pa.Table]

    @cached_property
    def graph(self) -> Graph:
        """The statements, and which checkpoint follows from which."""
        table = self.read(STATEMENTS)
        pairs = zip(table["digest"].to_pylist(), table["payload"].to_pylist(), strict=True)
        return Graph({digest: Statement.model_validate_json(payload) for digest, payload in pairs})

    def read(
        self, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Read a table of the index, or the part of it that a filter selects."""
        if isinstance(self.source, Path):
            words = [field.name for field in SCHEMAS.get(name, ()) if field.type == WORD]
            path = self.source / f"{name}.parquet"
            return pq.read_table(
                path,
                columns=None if columns is None else list(columns),
                filters=where,
                read_dictionary=words,
            )
        table = self.source[name]
        table = table if where is None else table.filter(where)
        return table if columns is None else table.select(list(columns))


def open_index(store: str, place: Path) -> Index:
    """Open the index of a store; build it, or what it lacks, if the store has changed.

    Args:
        store: absolute uri.
        place: local folder of the store, or the cache of a remote one.

    Raises:
        SettingsError: the store has no statements.
        DataError: an object or statement is gone, or of another version.
        TamperError: one of them is not what was recorded.
    """
    names = store_at(f"{store}/statements").list_files()
    digests = sorted(name.removesuffix(".json") for name in names)
    if not digests:
        raise SettingsError(f"--store {store} holds no statements. Correct it.")
    folder = place / "index" / _name_of(digests)
    if _is_sound(folder):
        return Index(folder)
    tables = _build(store, digests, _newest(place / "index", set(digests)))
    try:
        with staged_folder(folder) as staged:
            for name, table in tables.items():
                path = staged / f"{name}.parquet"
                pq.write_table(table, path, compression="zstd", row_group_size=_ROW_GROUP)
            manifest = folder_manifest(staged)
            write_bytes(staged / MANIFEST, manifest)
            write_bytes(staged / SIGNATURE, seal(_KIND, folder.name, manifest))
    except OSError as error:
        logger.warning("the index is not kept, %s cannot be written: %s", folder, error)
        return Index(tables)
    for old in _newest_first(folder.parent)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return Index(folder)


def _name_of(digests: Sequence[str]) -> str:
    return sha256_bytes(canonical_json([_VERSION, *digests]))[:16]


def _is_sound(folder: Path) -> bool:
    """True if an index is complete and as it was written; a damaged one is removed."""
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError:
        return False
    try:
        signature = folder / SIGNATURE
        signed = signature.read_bytes() if signature.is_file() else b""
        if unseal(_KIND, folder.name, signed, f"the index {folder}") != manifest:
            raise TamperError(f"the index {folder} has the signature of another one")
        if folder_manifest(folder, {SIGNATURE}) != manifest:
            raise TamperError(f"the index {folder} was changed")
    except DataError as error:
        logger.warning("the index is built again: %s", error)
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def _newest(parent: Path, digests: set[str]) -> Index | None:
    """Find the newest sound index that knows nothing but these statements."""
    for folder in _newest_first(parent):
        if _is_sound(folder) and set(_statement_digests(Index(folder))) <= digests:
            return Index(folder)
    return None


def _newest_first(parent: Path) -> list[Path]:
    result = parent.glob("[0-9a-f]*")
    return sorted(result, key=lambda path: path.stat().st_mtime, reverse=True)


def _statement_digests(index: Index) -> list[str]:
    return index.read("statements", ["digest"])["digest"].to_pylist()


def _build(store: str, digests: Sequence[str], old: Index | None) -> dict[str, pa.Table]:
    """Make every table, from an older index and from the statements that it does not know."""
    indexed = set(_statement_digests(old)) if old else set()
    parts: Tables = {name: [old.read(name)] if old else [] for name in (*SCHEMAS, STATEMENTS)}
    artifacts = {one for table in parts["rows"] + parts["files"] for one in _values(table)}
    new = [digest for digest in digests if digest not in indexed]
    payloads = []
    for digest in progress(new, "indexing", len(new)):
        statement = load_statement(store, digest)
        for name, tables in tables_of(store, digest, statement, artifacts).items():
            parts[name] += tables
        artifacts |= {output.digest for output in statement.outputs}
        payloads.append(canonical_json(statement).decode())
    parts[STATEMENTS].append(pa.table({"digest": new, "payload": payloads}, schema=_SCHEMA))
    return {name: _merge(name, tables) for name, tables in parts.items()}


def _values(table: pa.Table) -> list[str]:
    return table["artifact"].unique().to_pylist()


def _merge(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    schema = SCHEMAS.get(name, _SCHEMA)
    merged = pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()
    if name == "places":  # several sets may be made of one file
        merged = merged.group_by(schema.names, use_threads=False).aggregate([]).select(schema.names)
    return merged.sort_by("source_row") if "source_row" in schema.names else merged
