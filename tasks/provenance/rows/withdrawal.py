"""Withdraw rows: what has to go because of them, and how to train without them.

Rows that say the same as a withdrawn one are withdrawn with it: curation keeps one of several
duplicates, and would keep the next one. Near duplicates are listed for people to decide.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from data_schemas.row_lineage import Retraining, WithdrawalImpact
from data_schemas.settings import PipelineSettings, Source
from data_schemas.statements import Statement
from tasks.errors import SettingsError
from tasks.formats.exclusions import LIST_FILE, WITHDRAWN, list_bytes, parse_list
from tasks.provenance.rows.find import RowSelection, by_row, is_digest
from tasks.provenance.rows.graph import Graph
from tasks.provenance.rows.index import Index
from tasks.provenance.rows.influence import trace_rows
from tasks.provenance.rows.tables import among
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.store.interface import store_at

_GROUPS = {
    "sft": "sft/reasoning",
    "merge": "merge",
    "grading": "grade",
    "rl_one": "rl/one",
    "rl_two": "rl/two",
    "general_sft": "sft/general",
}
"""Group of the pipeline's settings -> the stage that ran with it."""
_SIMILAR = re.compile(r", (?:Jaccard|cosine) [\d.]+$")
_OPTIONAL = ("sft/general",)
"""Stages that the default settings leave out."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The rows to withdraw."""

    digests: frozenset[str]
    unknown: frozenset[str]
    duplicates: frozenset[str]
    similar: frozenset[str]

    @property
    def rows(self) -> frozenset[str]:
        """Return those that were named, and their duplicates."""
        return self.digests | self.duplicates


def read_rows(index: Index, store: str, file: Path) -> Withdrawal:
    """Find the rows that a file names, one per line, by digest or text, and their duplicates.

    Raises:
        SettingsError: a line means no row, or the file cannot be read.
    """
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"--rows {file} cannot be read: {error}. Correct it.") from error
    digests: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if is_digest(line.strip()):
            digests.add(line.strip())
            continue
        try:
            digests |= set(by_row(index, store, line).rows.to_pylist())
        except SettingsError as error:
            raise SettingsError(f"--rows {file}, line {number}: {error}") from error
    if not digests:
        raise SettingsError(f"--rows {file} names no row. Write one per line.")
    matches = index.read("rows", ["source_row"], pc.field("source_row").isin(digests))
    unknown = digests - set(matches["source_row"].to_pylist())
    duplicates, similar = _twins(index, digests)
    return Withdrawal(frozenset(digests), frozenset(unknown), duplicates, similar)


def forget(
    index: Index, store: str, place: Path, withdrawal: Withdrawal, show: int
) -> WithdrawalImpact:
    """Name what has to go, and write the exclusion list and the settings without these rows.

    Args:
        index: of the store.
        store: absolute uri.
        place: local folder of the store, or the cache of a remote one.
        withdrawal: from `read_rows`.
        show: rows to list.
    """
    rows = withdrawal.rows
    selected = index.read("uses", where=pc.field("source_row").isin(rows))
    trace = trace_rows(
        index, RowSelection("withdrawn rows", selected, pa.array(sorted(rows))), show
    )
    payload = list_bytes(rows | _earlier(index.graph, store))
    folder = place / "withdrawn" / sha256_bytes(payload)[:16]
    write_bytes(folder / LIST_FILE, payload)
    newest = {
        checkpoint.release: checkpoint.statement
        for checkpoint in trace.checkpoints
        if checkpoint.release
    }
    return WithdrawalImpact(
        named=len(withdrawal.digests),
        unknown=tuple(sorted(withdrawal.unknown)),
        duplicates=tuple(sorted(withdrawal.duplicates)),
        similar=tuple(sorted(withdrawal.similar)),
        exclusions=str(folder / LIST_FILE),
        rows=payload.count(b"\n"),
        trace=trace,
        retrainings=tuple(
            _retraining(index, store, name, statement, folder)
            for name, statement in sorted(newest.items())
        ),
    )


def retraining_settings(
    index: Index, store: str, release: str, exclusions: str
) -> PipelineSettings:
    """Return the pipeline's settings for a release, with all its data but what is excluded.

    Nights of retraining become sources of one run from the base model.

    Args:
        index: of the store.
        store: absolute uri.
        release: digest of its statement.
        exclusions: file with the exclusion list.

    Raises:
        SettingsError: it was not made by `post_training` and `retrain` of this version.
    """
    graph = index.graph
    chain = [graph.statements[digest] for digest in graph.in_order(graph.behind([release]))]
    first = {statement.stage: statement for statement in reversed(chain)}
    needed = {"ingest", "curate", *_GROUPS.values()}.difference(_OPTIONAL)
    missing = sorted(needed.difference(first))
    if missing:
        raise SettingsError(f"its chain has no {', '.join(missing)}; post_training did not make it")
    evaluations = [one for one in chain if one.stage.startswith("evaluate/")]
    base = first.get("ingest/base")
    sources = [*_sources(index, store, chain), Source(adapter=WITHDRAWN, path=exclusions)]
    groups = {
        name: json.loads(first[stage].settings) for name, stage in _GROUPS.items() if stage in first
    }
    groups["curation"] = json.loads(first["curate"].settings) | {
        "sources": [source.model_dump() for source in sources]
    }
    groups["release"] = json.loads(graph.statements[release].settings)
    groups["base_model"] = json.loads(base.settings).get("path", "") if base else ""
    if evaluations:
        groups["evaluation"] = json.loads(evaluations[0].settings)
    try:
        return PipelineSettings.model_validate(groups)
    except ValidationError as error:
        raise SettingsError(f"its settings are of another version: {error.errors()[0]}") from error


def _retraining(index: Index, store: str, name: str, release: str, folder: Path) -> Retraining:
    try:
        settings = retraining_settings(index, store, release, str(folder / LIST_FILE))
    except SettingsError as error:
        return Retraining(release=name, settings="", reason=str(error))
    write_bytes(folder / f"{name}.json", canonical_json(settings))
    return Retraining(release=name, settings=str(folder / f"{name}.json"))


def _sources(index: Index, store: str, chain: Sequence[Statement]) -> list[Source]:
    """List the sources of every ingestion; files of an inbox are those copied into the store."""
    files = index.read("files").to_pylist()
    sources: dict[Source, None] = {}
    for statement in chain:
        if statement.stage == "ingest":
            rows = json.loads(statement.settings)["sources"]
            sources |= dict.fromkeys(map(Source.model_validate, rows))
        elif statement.stage == "intake":
            raw = {output.digest for output in statement.outputs}
            copies = (
                Source(adapter=file["source"], path=f"{store}/{file['uri']}")
                for file in files
                if file["artifact"] in raw
            )
            sources |= dict.fromkeys(copies)
    return [source for source in sources if source.adapter != WITHDRAWN]


def _earlier(graph: Graph, store: str) -> frozenset[str]:
    """Collect the rows of every exclusion list that a curated set of this store was made with."""
    results: frozenset[str] = frozenset()
    outputs = {
        output.digest
        for statement in graph.statements.values()
        if statement.stage == "curate"
        for output in statement.outputs
    }
    for digest in outputs:
        place = store_at(f"{store}/objects/{digest[:16]}")
        if LIST_FILE in place.list_files():
            results |= parse_list(place.read_bytes(LIST_FILE), place.uri)
    return results


def _twins(index: Index, rows: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Find rows that were dropped as duplicates of these, or kept in their place.

    Returns:
        Rows that say the same, and rows that say nearly the same, or in other words.
    """
    table = index.read("rows", ["artifact", "item", "source_row", "reason", "detail"])
    # Acero joins no dictionaries.
    table = table.set_column(0, "artifact", table["artifact"].cast(pa.string()))
    dropped = table.filter(among("reason", ["duplicate", "near_duplicate", "same_meaning"]))
    # The detail is 'of <id>', 'of <id>, Jaccard 0.93' or 'of <id>, cosine 0.931'.
    details = (detail.removeprefix("of ") for detail in dropped["detail"].to_pylist())
    pairs_table = pa.table(
        {
            "artifact": dropped["artifact"],
            "item": pa.array([_SIMILAR.sub("", text) for text in details], pa.string()),
            "other": dropped["source_row"],
            "why": dropped["reason"].cast(pa.string()),
        }
    )
    survivors = table.filter(among("reason", [""])).select(["artifact", "item", "source_row"])
    pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for row in pairs_table.join(survivors, ["artifact", "item"], join_type="inner").to_pylist():
        pairs[row["why"] == "duplicate"].append((row["source_row"], row["other"]))
    same = frozenset(_closure(set(rows), pairs[True]))
    near = {other for pair in pairs[False] for one, other in (pair, pair[::-1]) if one in same}
    return same - frozenset(rows), frozenset(near) - same


def _closure(rows: set[str], pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Add every row that is paired with one of these, directly or through others."""
    while more := {other for pair in pairs for other in pair if rows & {*pair}} - rows:
        rows = rows | more
    return rows
