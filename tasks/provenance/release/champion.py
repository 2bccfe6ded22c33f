"""The released model that a candidate would replace, and the two compared on the same problems.

The released model's own evaluation is in the store, so nothing is generated again. Only problems
that both evaluations answered with the same content count; ids alone may name other problems.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.artifacts import ReportRef, StoreRef
from data_schemas.prompts import Problem
from data_schemas.reports import Comparison
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.statements import Statement
from tasks.algorithms.comparison import SAMPLES_FILE, compare
from tasks.errors import DataError, SettingsError
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.registration import MODEL
from tasks.provenance.lineage.registry import AUDIT_TAG, RELEASED
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import chain
from tasks.store.objects import localise

HELD_OUT = "held_out.parquet"
CANDIDATE = "candidate"
"""Role of the checkpoint that a release reads."""


@dataclass(frozen=True, slots=True)
class Champion:
    """The released version of a registered model."""

    version: str
    """'models:/NAME/3'"""
    statement: str
    checkpoint: str
    """Digest of what was released, '' if its statement is not in this store."""
    audit: str
    """Verdict of its last audit, '' if there was none."""
    comparisons: tuple[Comparison, ...] = ()
    """Candidate minus champion; empty without a problem in common."""


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """One model's answers to the held-out problems."""

    settings: EvaluationSettings
    samples: list[SampleResult]
    problems: dict[str, Problem]


def find_champion(
    name: str, candidate: str, progression: ReportRef, store: StoreRef
) -> Champion | None:
    """Find the released model and compare the candidate with it; None if nothing is released.

    Args:
        name: of the registered model.
        candidate: digest of its checkpoint.
        progression: evaluations of the candidate.
        store: of the candidate.

    Raises:
        EngineError: MLflow does not answer.
        TamperError: an evaluation was changed.
    """
    try:
        version = Lookup(store.tracking_uri).version(f"models:/{name}@{RELEASED}")
    except SettingsError:
        return None
    root = version.tags.get("statement", "")
    uri, audit = f"models:/{name}/{version.number}", version.tags.get(AUDIT_TAG, "")
    try:
        statements = chain(store.uri, [root])
        (checkpoint,) = [item.digest for item in statements[root].inputs if item.role == CANDIDATE]
    except (DataError, KeyError, ValueError):  # of another store, or not of this pipeline
        return Champion(uri, root, "", audit)
    if checkpoint == candidate:
        return Champion(uri, root, checkpoint, audit)
    cache = workplace(store)
    ours = _evaluation(candidate, chain(store.uri, [progression.statement]), cache)
    theirs = _evaluation(checkpoint, statements, cache)
    found = _compare(ours, theirs, uri) if ours and theirs else ()
    return Champion(uri, root, checkpoint, audit, found)


def _evaluation(
    checkpoint: str, statements: Mapping[str, Statement], cache: Path
) -> _Evaluated | None:
    """Read the last evaluation of a checkpoint in a chain."""
    for statement in reversed([*statements.values()]):
        read = {item.role: item for item in statement.inputs}
        if not statement.stage.startswith("evaluate/") or "curated" not in read:
            continue
        if MODEL in read and read[MODEL].digest == checkpoint:
            report, curated = statement.outputs[0], read["curated"]
            samples = localise(report.uri, report.digest, cache) / SAMPLES_FILE
            problems = localise(curated.uri, curated.digest, cache) / HELD_OUT
            return _Evaluated(
                EvaluationSettings.model_validate_json(statement.settings),
                read_table(samples, SampleResult),
                {problem.id: problem for problem in read_table(problems, Problem)},
            )
    return None


def _compare(ours: _Evaluated, theirs: _Evaluated, name: str) -> tuple[Comparison, ...]:
    same = {id_ for id_, problem in ours.problems.items() if theirs.problems.get(id_) == problem}
    sides = [[one for one in side.samples if one.problem_id in same] for side in (ours, theirs)]
    return tuple(compare(sides[0], sides[1], name, ours.settings)) if all(sides) else ()
