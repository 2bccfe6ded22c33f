"""Follow rows to models and back, withdraw them, and compare two releases."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from data_schemas.settings import PipelineSettings, Source
from data_schemas.statements import (
    Difference,
    Forgotten,
    ModelTrace,
    Place,
    ReleaseComparison,
    Retraining,
    RowOutcome,
    RowTrace,
    Statement,
    TrainedRow,
    UsedIn,
)
from tasks.errors import SettingsError
from tasks.formats.decisions import LIST_FILE, WITHDRAWN, list_bytes, parse_list
from tasks.provenance.lineage.statements import flat_values
from tasks.provenance.rows.find import RowSelection, by_row, is_digest
from tasks.provenance.rows.index import IS_TRAINED, Graph, Index, among, checkpoint_of
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.store.interface import store_at

# Follow rows to the checkpoints and releases they touched, and models back to their rows.

_SUMS = [("times", "sum"), ("tokens", "sum"), ("advantage", "sum")]
HELD_OUT = "held out"


def trace_rows(index: Index, selection: RowSelection, show: int) -> RowTrace:
    """Follow rows forward.

    Args:
        index: of the store.
        selection: from `tasks.provenance.rows.find`.
        show: places and items to list.
    """
    where = pc.field("source_row").isin(selection.rows)
    outcomes = index.read("rows", where=where)
    held_out = outcomes.filter(among("kind", [HELD_OUT]))
    uses = summarise(index.graph, selection.uses)
    roots = [use.statement for use in uses if use.trained]
    return RowTrace(
        asked=selection.title,
        rows=len(selection.rows),
        places=_places(index, where, show),
        outcomes=tuple(
            RowOutcome(**{name: row[name] for name in RowOutcome.model_fields})
            for row in outcomes.slice(0, show).to_pylist()
        ),
        uses=uses,
        evaluations=_evaluations(index.graph, held_out["artifact"].unique().to_pylist()),
        checkpoints=index.graph.describe_all(index.graph.made_from(roots)),
    )


def trace_model(index: Index, statements: Sequence[str], show: int) -> tuple[ModelTrace, pa.Table]:
    """Find every row that trained a model, and what was made from it.

    Args:
        index: of the store.
        statements: that made the model.
        show: rows to list.

    Returns:
        The trace, and the table of all rows.
    """
    graph = index.graph
    made_of = graph.made_of(statements)
    uses = uses_of(index, made_of)
    rows = rows_of(uses)
    trace = ModelTrace(
        model=graph.describe(statements[0]),
        rows=len(rows["source_row"].unique()),
        uses=summarise(graph, uses),
        top=tuple(TrainedRow(**row) for row in rows.slice(0, show).to_pylist()),
        table="",
        made_of=graph.describe_all(made_of),
        made_from=graph.describe_all(
            one for one in graph.made_from(statements) if one not in statements
        ),
    )
    return trace, rows


def uses_of(index: Index, statements: Iterable[str]) -> pa.Table:
    """Read all uses by some stages."""
    return index.read("uses").filter(among("statement", statements))


def rows_of(uses: pa.Table) -> pa.Table:
    """Sum the uses that changed weights per row and item, the largest advantage first."""
    trained = uses.filter(IS_TRAINED)
    keys = ["source_row", "item", "source"]
    summed = trained.group_by(keys).aggregate([*_SUMS, ("statement", "count_distinct")])
    sums = summed.rename_columns(
        {f"{name}_sum": name for name, _ in _SUMS} | {"statement_count_distinct": "stages"}
    )
    order = [("advantage", "descending"), ("times", "descending"), ("source_row", "ascending")]
    return sums.select([*TrainedRow.model_fields]).sort_by(order)


def summarise(graph: Graph, uses: pa.Table) -> tuple[UsedIn, ...]:
    """Sum uses per stage and outcome, stages in order."""
    aggregates = [*_SUMS, ("source_row", "count_distinct"), ("step", "distinct")]
    results = [
        _used_in(graph, row, trained=trained)
        for trained, part in ((True, IS_TRAINED), (False, ~IS_TRAINED))
        for row in uses.filter(part)
        .group_by(["statement", "outcome"])
        .aggregate(aggregates)
        .to_pylist()
    ]
    place = {name: n for n, name in enumerate(graph.in_order({use.statement for use in results}))}
    return tuple(
        sorted(results, key=lambda use: (place[use.statement], not use.trained, use.outcome))
    )


def _used_in(graph: Graph, row: dict, *, trained: bool) -> UsedIn:
    statement = graph.statements[row["statement"]]
    checkpoint = checkpoint_of(statement)
    return UsedIn(
        stage=statement.stage,
        statement=row["statement"],
        checkpoint=checkpoint.digest if checkpoint else "",
        outcome=row["outcome"],
        rows=row["source_row_count_distinct"],
        steps=tuple(sorted(step for step in row["step_distinct"] if step)),
        times=row["times_sum"],
        tokens=row["tokens_sum"],
        advantage=row["advantage_sum"],
        trained=trained,
    )


def _places(index: Index, where: pc.Expression, show: int) -> tuple[Place, ...]:
    result = index.read("places", where=where).slice(0, show).to_pylist()
    files = index.read("files")
    uris = dict(zip(files["file"].to_pylist(), files["uri"].to_pylist(), strict=True))
    return tuple(
        Place(uri=uris[place["file"]], file=place["file"], number=place["number"])
        for place in result
    )


def _evaluations(graph: Graph, artifacts: Sequence[str]) -> tuple[str, ...]:
    """List the statements that measured a model with these held-out sets."""
    return tuple(
        digest
        for digest, statement in graph.statements.items()
        if statement.stage.startswith("evaluate")
        and any(item.digest in artifacts for item in statement.inputs)
    )


# Withdraw rows: what has to go because of them, and how to train without them.
#
# Rows that say the same as a withdrawn one are withdrawn with it: curation keeps one of several
# duplicates, and would keep the next one. Near duplicates are listed for people to decide.

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


def forget(index: Index, store: str, place: Path, withdrawal: Withdrawal, show: int) -> Forgotten:
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
    return Forgotten(
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


# What two releases differ in: rows, files, code, settings, rewards, evaluation.

_AMOUNTS = ("times", "tokens", "advantage")
_REWARDS = ("rewards.", "judge.")
"""How the names of settings about rewards begin."""
Values = dict[tuple[str, str], str]
"""(stage, name) -> value."""


def compare(index: Index, before: str, after: str) -> tuple[ReleaseComparison, pa.Table]:
    """Compare two checkpoints by their statements.

    Returns:
        The comparison, and the table of the rows that differ.
    """
    graph = index.graph
    roots = (before, after)
    uses = [uses_of(index, graph.made_of([root])) for root in roots]
    rows = compare_rows(*map(rows_of, uses))
    kinds = Counter(rows["change"].to_pylist())
    chains = [_stages(graph, root) for root in roots]
    settings = differences(*map(_settings, chains))
    both = chains[0].keys() & chains[1].keys()
    verifiers = differences(*map(_verifiers, uses))
    comparison = ReleaseComparison(
        before=graph.describe(before),
        after=graph.describe(after),
        rows_before=len(rows_of(uses[0])),
        rows_after=len(rows_of(uses[1])),
        added=kinds["added"],
        removed=kinds["removed"],
        changed=kinds["changed"],
        table="",
        data=differences(*(_files(index, graph, root) for root in roots)),
        code=differences(*map(_code, chains)),
        settings=tuple(
            one for one in settings if one.stage in both and not one.name.startswith(_REWARDS)
        ),
        rewards=(
            *(one for one in settings if _is_of_rl(one) and one.name.startswith(_REWARDS)),
            *verifiers,
        ),
        evaluation=(
            *differences(*(_accuracy(graph.statements[root]) for root in roots)),
            *_held_out(index, graph, roots),
        ),
    )
    return comparison, rows


def compare_rows(before: pa.Table, after: pa.Table) -> pa.Table:
    """Join the rows of two models and keep those that differ, with the kind of change."""
    keys = ["source_row", "item"]
    sides = [table.select([*keys, *_AMOUNTS]) for table in (before, after)]
    joined = sides[0].join(
        sides[1], keys, join_type="full outer", left_suffix=" before", right_suffix=" after"
    )
    old, new = pc.field("times before"), pc.field("times after")
    is_equal = pc.scalar(True)
    for name in _AMOUNTS:
        is_equal = is_equal & (pc.field(f"{name} before") == pc.field(f"{name} after"))
    parts = {
        "added": joined.filter(old.is_null()),
        "removed": joined.filter(new.is_null()),
        "changed": joined.filter(old.is_valid() & new.is_valid() & ~is_equal),
    }
    labelled = [
        part.append_column("change", pa.array([name] * len(part), pa.string()))
        for name, part in parts.items()
    ]
    return pa.concat_tables(labelled).sort_by(
        [("change", "ascending"), ("source_row", "ascending")]
    )


def differences(before: Mapping, after: Mapping) -> tuple[Difference, ...]:
    """List the names under which two mappings have different values."""
    return tuple(
        Difference(stage=stage, name=name, before=before.get(key, ""), after=after.get(key, ""))
        for key in [*before, *(key for key in after if key not in before)]
        if before.get(key, "") != after.get(key, "")
        for stage, name in [key]
    )


def _is_of_rl(one: Difference) -> bool:
    return one.stage.startswith("rl/")


def _stages(graph: Graph, root: str) -> dict[str, Statement]:
    """Name every statement behind a model; a stage that ran several times is numbered."""
    stages: dict[str, Statement] = {}
    counts: Counter[str] = Counter()
    for digest in graph.in_order(graph.behind([root])):
        statement = graph.statements[digest]
        counts[statement.stage] += 1
        count = counts[statement.stage]
        stages[statement.stage if count == 1 else f"{statement.stage} {count}"] = statement
    return stages


def _settings(stages: Mapping[str, Statement]) -> Values:
    return {
        (stage, name): value
        for stage, statement in stages.items()
        for name, value in flat_values(json.loads(statement.settings)).items()
    }


def _code(stages: Mapping[str, Statement]) -> Values:
    results: Values = {}
    for stage, statement in stages.items():
        results[stage, "code"] = ", ".join(statement.code)
        results[stage, "environment"] = statement.environment
    return results


def _files(index: Index, graph: Graph, root: str) -> Values:
    behind = graph.behind([root])
    digests = {one.digest for digest in behind for one in graph.statements[digest].outputs}
    files = index.read("files").filter(among("artifact", digests)).to_pylist()
    return {("", file["uri"]): file["file"] for file in files}


def _verifiers(uses: pa.Table) -> Values:
    """Count what every verifier's prompts contributed."""
    trained = uses.filter(IS_TRAINED & (pc.field("tokens") > 0))
    sums = [("source_row", "count_distinct"), ("tokens", "sum"), ("advantage", "sum")]
    return {
        ("", f"verifier {row['verifier']}"): (
            f"{row['source_row_count_distinct']:,} rows, {row['tokens_sum']:,} tokens, "
            f"|advantage| {row['advantage_sum']:,.1f}"
        )
        for row in trained.group_by("verifier").aggregate(sums).to_pylist()
    }


def _accuracy(statement: Statement) -> Values:
    return {
        ("", name): f"{value:.4f}" if isinstance(value, float) else str(value)
        for name, value in statement.facts.items()
        if name.startswith("accuracy/") or name == "released"
    }


def _held_out(index: Index, graph: Graph, roots: Sequence[str]) -> Iterable[Difference]:
    """Yield a difference if the two were measured on different rows."""
    rows = index.read("rows", ["artifact", "kind", "source_row"]).filter(among("kind", [HELD_OUT]))
    suites = []
    for root in roots:
        inputs = {
            item.digest
            for digest in graph.behind([root])
            if graph.statements[digest].stage.startswith("evaluate")
            for item in graph.statements[digest].inputs
        }
        suites.append(set(rows.filter(among("artifact", inputs))["source_row"].to_pylist()))
    if all(suites) and suites[0] != suites[1]:
        common = len(suites[0] & suites[1])
        yield Difference(
            stage="",
            name=f"held-out rows ({common:,} in common; compare on these only)",
            before=f"{len(suites[0]):,}",
            after=f"{len(suites[1]):,}",
        )
