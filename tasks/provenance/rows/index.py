"""The index: all that the statements of a store tell of rows, in a few sorted tables.

    <store>/index/<name>/   statements, rows, uses, places, files: parquet; MANIFEST.json

The name follows from the digests of all statements, so an index that is older than the store is
noticed by its name. A new index takes over what an older one knows, and reads the new statements
and their objects, each checked against its digest. An index that was damaged, or that knows a
statement which is no longer there, is not used; nor is one that this run's key, or one that it
trusts, did not sign. It is no evidence: `audit` proves what it was made from.

For a store in S3 the index is on the local disk.
"""

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data_schemas.statements import Statement
from tasks.errors import DataError, SettingsError, TamperError
from tasks.platform.progress import progress
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.provenance.lineage.statements import load_statement
from tasks.provenance.rows.graph import Graph
from tasks.provenance.rows.tables import SCHEMAS, WORD, Tables, tables_of
from tasks.store.files import canonical_json, sha256_bytes, staged_folder, write_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, folder_manifest

logger = logging.getLogger(__name__)

_KIND = "index"
_VERSION = 1
"""Version of the layout; part of the name."""
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
