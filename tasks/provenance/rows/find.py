"""Which raw rows, uses or models a person means: digest, text, file, source, verifier, judge."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from data_schemas.rows import DEMONSTRATIONS
from data_schemas.statements import Output, Statement
from tasks.algorithms.personal_data import personal_passages
from tasks.errors import DataError, SettingsError
from tasks.formats.delimited import cells_under, is_delimited, open_bytes, open_text, rows_of
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.rows.graph import SHORTEST_PREFIX, Graph
from tasks.provenance.rows.index import Index
from tasks.provenance.rows.tables import KINDS, Object, among
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at

_THREADS = 4
"""Decompression and search release the interpreter lock."""
_HEX = frozenset("0123456789abcdef")
_SHA256 = 64


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The rows that a question names, and what they were used for."""

    title: str
    uses: pa.Table
    rows: pa.Array
    """Distinct sha256 of raw rows."""


def by_row(index: Index, store: str, text: str) -> RowSelection:
    """Find rows by the digest of their bytes, or by pasted text.

    Args:
        index: of the store.
        store: absolute uri.
        text: sha256, or its first 8 or more characters; or a raw row; or a part of what a prompt,
            a response or a gold answer says.

    Raises:
        SettingsError: nothing that was curated matches.
    """
    if len(text) >= SHORTEST_PREFIX and is_digest(text.ljust(_SHA256, "0")):
        digest = pc.field("source_row")
        rows = _rows_where(index, (digest >= text) & (digest <= text + "f" * _SHA256))
        if len(rows) > 1:
            raise SettingsError(f"--row {text} begins the digests of {len(rows)} rows; type more")
    else:
        rows = find_text(index, store, text)
    if not len(rows):
        raise SettingsError(
            f"--row {text[:60]!r}: no row of this store has this digest or text. Paste a line of a "
            "raw file as it is, or a part of a prompt or response. A line of a CSV file is found "
            "while the file is where it was read."
        )
    return _of_rows(index, f"row {text[:60]!r}" if len(rows) > 1 else f"row {rows[0]}", rows)


def is_digest(text: str) -> bool:
    """True for a sha256 in hexadecimal."""
    return len(text) == _SHA256 and _HEX.issuperset(text)


def find_text(index: Index, store: str, text: str) -> pa.Array:
    """Find the rows with these bytes; if there are none, those that say this text.

    What tells of a person may be masked in the curated sets. It is looked for in the raw files as
    well: JSONL and tables in text, while they are where they were read.

    Raises:
        SettingsError: the text is too short to mean a row.
        TamperError: a curated set was changed.
    """
    if len(text.strip()) < SHORTEST_PREFIX:
        raise SettingsError(f"--row {text!r}: give at least {SHORTEST_PREFIX} characters")
    for digests in (_digests_of(text), _digests_of_cells(index, store, text)):
        exact = _rows_where(index, pc.field("source_row").isin(pa.array(digests, pa.string())))
        if len(exact):
            return exact
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    curated = index.read("rows", ["artifact", "kind"]).filter(among("kind", KINDS.values()))
    names = curated["artifact"].unique().to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        results = list(pool.map(lambda name: _saying(store, name, plain), names))
    if personal_passages(plain):
        said = pa.array(_digests_of_raw_rows(index, store, plain), pa.string())
        results.append(_rows_where(index, pc.field("source_row").isin(said)))
    return pa.chunked_array([*results, pa.array([], pa.string())]).unique()


def by_file(index: Index, name: str) -> RowSelection:
    """Find the rows of a raw file, by its path or uri as it was ingested, or by its sha256.

    Raises:
        SettingsError: no such file was ingested.
        DataError: its rows were curated by a version that did not record their places.
    """
    files = index.read("files")
    resolved = str(Path(name).expanduser().resolve())
    pairs = zip(files["uri"].to_pylist(), files["file"].to_pylist(), strict=True)
    digests = {
        file
        for uri, file in pairs
        if uri in (name, resolved)
        or uri.endswith(f"/{name}")
        or (len(name) >= SHORTEST_PREFIX and file.startswith(name))
    }
    if not digests:
        raise SettingsError(
            f"--file {name!r} was not ingested into this store. Give its path, or its sha256."
        )
    places = index.read("places", ["source_row", "file"])
    rows = places.filter(among("file", digests))
    if not len(rows) and _is_unplaced(index, files, digests):
        raise DataError(
            f"--file {name!r}: what was curated from it does not say which rows are its own; an "
            "earlier version made it. Trace its source instead."
        )
    return _of_rows(index, f"file {name}", rows["source_row"].unique())


def by_source(index: Index, name: str) -> RowSelection:
    """Find the rows that an adapter read.

    Raises:
        SettingsError: it read none.
    """
    rows = index.read("rows", ["source_row", "source"])
    _check_name("--source", name, rows["source"].unique().to_pylist())
    own = rows.filter(among("source", [name]))
    return _of_rows(index, f"source {name}", own["source_row"].unique())


def by_verifier(index: Index, name: str) -> RowSelection:
    """Find the uses of prompts that a verifier scored.

    Args:
        index: of the store.
        name: 'final_answer', or with the digest of the code that ran 'final_answer@1a2b3c4d'.

    Raises:
        SettingsError: no prompt of this store has this verifier, or no stage ran this code.
    """
    verifier, _, code = name.partition("@")
    uses = index.read("uses")
    _check_name("--verifier", verifier, uses["verifier"].unique().to_pylist())
    uses = uses.filter(among("verifier", [verifier]))
    if code:
        ran = [
            digest
            for digest, statement in index.graph.statements.items()
            if any(one.startswith(code) for one in statement.code)
        ]
        if not ran:
            raise SettingsError(f"--verifier {name!r}: no stage of this store ran code {code!r}")
        uses = uses.filter(among("statement", ran))
    return RowSelection(f"verifier {name}", uses, uses["source_row"].unique())


def by_judge(index: Index, name: str) -> RowSelection:
    """Find the uses of prompts in phases that a judge scored.

    Args:
        index: of the store.
        name: kind, model or address of the judge, as in the settings.

    Raises:
        SettingsError: no phase of RL had this judge.
    """
    judges = {
        digest: names
        for digest, statement in index.graph.statements.items()
        if statement.stage.startswith("rl/") and (names := _judge_of(statement))
    }
    _check_name("--judge", name, {value for names in judges.values() for value in names})
    phases = [digest for digest, names in judges.items() if name in names]
    uses = index.read("uses").filter(among("statement", phases))
    return RowSelection(f"judge {name}", uses, uses["source_row"].unique())


def model_statements(graph: Graph, model: str, store: str, tracking_uri: str) -> list[str]:
    """Find the statements of a model: 'models:/NAME@released', 'models:/NAME/3', or a digest.

    Raises:
        SettingsError: there is no such model in this store.
        DataError: its statement is not in the store.
        EngineError: MLflow does not answer.
    """
    if not model.startswith("models:"):
        return graph.find(model)
    statement = find_release(model, store, tracking_uri).folder.statement
    if statement not in graph.statements:
        raise DataError(
            f"{model} names the statement {statement or '(none)'}, which is not in this store. "
            "Correct --store, or run the audit."
        )
    return [statement]


def _of_rows(index: Index, title: str, rows: pa.Array) -> RowSelection:
    return RowSelection(title, index.read("uses", where=pc.field("source_row").isin(rows)), rows)


def _rows_where(index: Index, where: pc.Expression) -> pa.Array:
    results = [index.read(name, ["source_row"], where)["source_row"] for name in ("rows", "places")]
    return pa.chunked_array(
        [chunk for one in results for chunk in one.chunks], pa.string()
    ).unique()


def _digests_of(text: str) -> list[str]:
    """Return what `tasks.curation.rows` may have named a pasted row."""
    line = text.strip("\r\n")
    digests = [sha256_bytes(line.encode())]
    with suppress(ValueError, RecursionError):  # it is not the JSON of a parquet or CSV row
        digests.append(sha256_bytes(canonical_json(json.loads(line))))
    return digests


def _digests_of_cells(index: Index, store: str, text: str) -> list[str]:
    """Return what a pasted line may be called as a row of the CSV files that the store has read.

    The cells of a line have names in the header of its file only.
    """
    line = text.strip("\r\n")
    results: set[str] = set()
    for path in filter(lambda path: is_delimited(path.name), _raw_files(index, store)):
        with suppress(OSError, UnicodeError), open_text(path) as lines:
            if cells := cells_under(lines, line):
                results.add(sha256_bytes(canonical_json(cells)))
    return sorted(results)


def _digests_of_raw_rows(index: Index, store: str, text: str) -> list[str]:
    """Return what the raw rows may be called that say a text."""
    quoted = {text, *(json.dumps(text, ensure_ascii=one)[1:-1] for one in (True, False))}
    patterns = [one.encode() for one in quoted]
    results: set[str] = set()
    for path in _raw_files(index, store):
        if is_delimited(path.name):
            with suppress(OSError, UnicodeError), open_text(path) as lines:
                for row in rows_of(lines):
                    if any(text in cell for cell in row.values()):
                        results.add(sha256_bytes(canonical_json(row)))
        elif ".jsonl" in path.name.lower():
            with suppress(OSError), open_bytes(path) as lines:
                for line in lines:
                    if any(one in line for one in patterns):
                        # A row that is no UTF-8 was not read: its ending cannot matter.
                        results.update(_digests_of(line.decode(errors="replace")))
    return sorted(results)


def _raw_files(index: Index, store: str) -> list[Path]:
    """Return where the raw files are that the store has read, once each."""
    files = index.read("files", ["artifact", "uri"]).to_pylist()
    places: dict[Path, None] = {}
    for artifact, uri in dict.fromkeys((file["artifact"], file["uri"]) for file in files):
        # A file that was copied is beside its list, and named from the store on
        # (`origins.raw_name`); others are where they were.
        place = store_at(f"{store}/objects/{artifact[:16]}").local_path or Path()
        places[place / uri.removeprefix(f"objects/{artifact[:16]}/")] = None
    return list(places)


def _saying(store: str, artifact: str, text: str) -> pa.Array:
    """Find the rows of a curated set whose prompt, response or gold answer contains a text."""
    uri = f"{store}/objects/{artifact[:16]}"
    opened = Object(store, Output(role="curated", uri=uri, digest=artifact))
    quoted = json.dumps(text, ensure_ascii=False)[1:-1]
    results: list[str] = []
    for file in KINDS:
        if file not in opened:
            continue
        # Messages and gold answers are JSON; a gold answer of a user's own verifier may be text.
        second = ("response", text) if file == DEMONSTRATIONS else ("answer", quoted)
        patterns = [("messages", quoted), second]
        if second[0] == "answer" and quoted != text:
            patterns.append(("answer", text))
        table = opened.read(file, ["source_row", "messages", second[0]])
        for column, pattern in patterns:
            options = pc.MatchSubstringOptions(pattern)
            mask = pc.call_function("match_substring", [table[column]], options)
            results += table.filter(mask)["source_row"].to_pylist()
    return pa.array(results, pa.string())


def _is_unplaced(index: Index, files: pa.Table, digests: Iterable[str]) -> bool:
    """True if a set was curated from one of these files without recording the places of rows."""
    raw = set(files.filter(among("file", digests))["artifact"].to_pylist())
    return any(
        statement.facts.get("rows")
        for statement in index.graph.statements.values()
        if statement.stage == "curate" and raw & {item.digest for item in statement.inputs}
    )


def _judge_of(statement: Statement) -> set[str]:
    rewards: Mapping[str, object] = json.loads(statement.settings).get("rewards", {})
    judge = rewards.get("judge", {})
    if not isinstance(judge, dict) or judge.get("kind", "none") == "none":
        return set()
    return {str(judge[name]) for name in ("kind", "model", "address") if judge.get(name)}


def _check_name(option: str, name: str, values: Iterable[str]) -> None:
    names = sorted(set(values) - {""})
    if name not in names:
        raise SettingsError(
            f"{option} {name!r} is none of: {', '.join(names) or 'none in this store'}"
        )
