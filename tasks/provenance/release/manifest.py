"""Everything a release was made from, by digest, collected from the chain of statements."""

from collections.abc import Mapping

from data_schemas.artifacts import CheckpointRef
from data_schemas.reports import Examination, GateDecision, PhaseGates, ReleaseManifest
from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.lineage import origins


def release_manifest(
    name: str,
    candidate: CheckpointRef,
    chain: Mapping[str, Statement],
    store: str,
    decision: GateDecision,
    gates: tuple[PhaseGates, ...] = (),
    verifiers: Examination | None = None,
) -> ReleaseManifest:
    """Collect the manifest of a candidate from the statements that led to it.

    The version is derived from the checkpoint's content, so a model has only one version.

    Args:
        name: of the registered model.
        candidate: the checkpoint.
        chain: from `tasks.provenance.lineage.statements.chain`, by digest.
        store: location of the chain's objects.
        decision: of the gate.
        gates: of the mismatch gate in every RL phase of the chain.
        verifiers: error rates of those of its problems.

    Raises:
        DataError: the chain does not contain the candidate.
    """
    entry = chain.get(candidate.statement)
    if entry is None or candidate.digest not in {output.digest for output in entry.outputs}:
        raise DataError(
            f"checkpoint {candidate.digest} is not in its own chain: statement "
            f"{candidate.statement or '(none)'} does not name it. Release what a stage has made."
        )
    items = [item for statement in chain.values() for item in statement.inputs]
    objects = {item.digest for item in items if not origins.is_source(item)}
    objects |= {output.digest for statement in chain.values() for output in statement.outputs}
    return ReleaseManifest(
        name=name,
        version=candidate.digest[:12],
        checkpoint=candidate.digest,
        statements=tuple(chain),
        objects=tuple(sorted(objects)),
        raw_files=origins.all_raw_files(store, chain.values()),
        gate=decision,
        mismatch=gates,
        verifiers=verifiers or Examination(),
    )
