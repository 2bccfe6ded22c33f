"""What two releases differ in: rows, files, code, settings, rewards, evaluation."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from data_schemas.row_lineage import Difference, ReleaseComparison
from data_schemas.statements import Statement
from tasks.provenance.lineage.statements import flat_values
from tasks.provenance.rows.graph import Graph
from tasks.provenance.rows.index import Index
from tasks.provenance.rows.influence import HELD_OUT, rows_of, uses_of
from tasks.provenance.rows.tables import IS_TRAINED, among

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
