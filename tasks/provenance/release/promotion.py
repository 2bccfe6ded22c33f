"""Which release is current, and how a candidate becomes it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.artifacts import Context, ReportRef, StoreRef
from data_schemas.reports import Comparison
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.statements import Statement
from tasks.algorithms.comparison import SAMPLES_FILE, compare
from tasks.errors import SettingsError
from tasks.provenance.lineage.connection import boundary, connect
from tasks.provenance.lineage.lookup import Lookup, Version
from tasks.provenance.lineage.registry import RELEASED, open_model
from tasks.provenance.lineage.releases import find_release, history_of
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import chain
from tasks.provenance.lineage.version_details import MODEL
from tasks.store.files import sha256_bytes
from tasks.store.lease import Lease, lease
from tasks.store.objects import localise

# The released model that a candidate would replace, and the two compared on the same problems.
#
# The released model's own evaluation is in the store, so nothing is generated again. Only problems
# that both evaluations answered with the same content count; ids alone may name other problems.

HELD_OUT = "held_out.parquet"


@dataclass(frozen=True, slots=True)
class Champion:
    """The released version of a registered model."""

    version: str
    """'models:/NAME/3'"""
    statement: str
    checkpoint: str
    """Digest of what was released, '' if its statement is not in this store."""
    comparisons: tuple[Comparison, ...] = ()
    """Candidate minus champion; empty without a problem in common."""


@dataclass(frozen=True, slots=True)
class _EvaluatedModel:
    """One model's answers to the held-out problems."""

    settings: EvaluationSettings
    samples: list[SampleResult]
    problems: dict[str, Problem]


def find_champion(
    name: str, candidate: str, progression: ReportRef, store: StoreRef
) -> Champion | None:
    """Find the released model and compare the candidate with it; None if nothing is released.

    Where the signed statements of this store know of no release of that name, MLflow is asked:
    another store may have one, with which nothing can be compared.

    Args:
        name: of the registered model.
        candidate: digest of its checkpoint.
        progression: evaluations of the candidate.
        store: of the candidate.

    Raises:
        EngineError: MLflow does not answer.
        DataError: its user may not change the registered model.
        TamperError: an evaluation was changed.
    """
    lookup, alias = Lookup(store.tracking_uri), f"models:/{name}@{RELEASED}"
    with boundary():
        open_model(connect(store.tracking_uri), name)
    if not history_of(name, store.uri):
        try:
            version = lookup.version(alias)
        except SettingsError:
            return None
        return Champion(_uri(version), version.tags.get("statement", ""), "")
    release = find_release(alias, store.uri, store.tracking_uri)
    root = release.folder.statement
    version = lookup.registered(name, root)
    uri = _uri(version) if version else f"release {root[:12]} of {name}"
    if release.checkpoint is None:  # not of this pipeline
        return Champion(uri, root, "")
    statements, checkpoint = chain(store.uri, [root]), release.checkpoint.digest
    if checkpoint == candidate:
        return Champion(uri, root, checkpoint)
    cache = workplace(store)
    ours = _evaluation(candidate, chain(store.uri, [progression.statement]), cache)
    theirs = _evaluation(checkpoint, statements, cache)
    result = _compare(ours, theirs, uri) if ours and theirs else ()
    return Champion(uri, root, checkpoint, result)


def _uri(version: Version) -> str:
    return f"models:/{version.name}/{version.number}"


def _evaluation(
    checkpoint: str, statements: Mapping[str, Statement], cache: Path
) -> _EvaluatedModel | None:
    """Read the last evaluation of a checkpoint in a chain."""
    for statement in reversed([*statements.values()]):
        inputs = {item.role: item for item in statement.inputs}
        if not statement.stage.startswith("evaluate/") or "curated" not in inputs:
            continue
        if MODEL in inputs and inputs[MODEL].digest == checkpoint:
            report, curated = statement.outputs[0], inputs["curated"]
            samples = localise(report.uri, report.digest, cache) / SAMPLES_FILE
            problems = localise(curated.uri, curated.digest, cache) / HELD_OUT
            return _EvaluatedModel(
                EvaluationSettings.model_validate_json(statement.settings),
                read_table(samples, SampleResult),
                {problem.id: problem for problem in read_table(problems, Problem)},
            )
    return None


def _compare(ours: _EvaluatedModel, theirs: _EvaluatedModel, name: str) -> tuple[Comparison, ...]:
    same = {id_ for id_, problem in ours.problems.items() if theirs.problems.get(id_) == problem}
    sides = [[one for one in side.samples if one.problem_id in same] for side in (ours, theirs)]
    return tuple(compare(sides[0], sides[1], name, ours.settings)) if all(sides) else ()


@contextmanager
def turn(name: str, context: Context) -> Iterator[Lease]:
    """Hold the lease of a registered model while the block runs; wait for another holder.

    So nobody else may release under a name between question and answer: which version is
    released, and what the registry said.
    """
    place = f"{context.store.uri}/leases/release-{sha256_bytes(name.encode())[:16]}"
    with lease(place, f"{context.execution.id}, release of {name}") as turn_lease:
        yield turn_lease
