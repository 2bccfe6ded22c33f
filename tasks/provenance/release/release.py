"""Build the release folder: a loadable model with manifest, gate decision, card and bill."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_schemas.artifacts import CheckpointRef
from data_schemas.reports import (
    EvaluationReport,
    GateDecision,
    PhaseGates,
    ReleaseManifest,
    VerifierExamination,
)
from data_schemas.settings import ReleaseSettings
from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.registry import BOM_FILE, CARD_FILE, GATE_FILE, MANIFEST_FILE
from tasks.provenance.lineage.statements import chain
from tasks.provenance.release.bom import bill_of_materials
from tasks.provenance.release.card import eval_results, limits, model_card, stated_rate
from tasks.provenance.release.evidence import base_license
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST

# Everything a release was made from, by digest, collected from the chain of statements.


def release_manifest(
    name: str,
    candidate: CheckpointRef,
    chain: Mapping[str, Statement],
    store: str,
    decision: GateDecision,
    gates: tuple[PhaseGates, ...] = (),
    verifiers: VerifierExamination | None = None,
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
        raw_files=origins.public_names(origins.all_raw_files(store, chain.values())),
        gate=decision,
        mismatch=gates,
        verifiers=verifiers or VerifierExamination(),
    )


EVAL_RESULTS = ".eval_results/held_out.yaml"
"""Scores in the form that the Hugging Face hub reads."""

CONFIG = "config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""OWNER/NAME: a path of a disk begins with a slash or has more parts."""


NO_PROBLEMS = VerifierExamination()


@dataclass(frozen=True, slots=True)
class ReleaseCandidate:
    """The model to release, with its evaluations and lineage."""

    checkpoint: CheckpointRef
    folder: Path
    """Folder of its verified files."""
    evidence: Sequence[str]
    """Statements of its evaluations; they belong to the chain as well."""
    progression: Sequence[EvaluationReport]
    """Every evaluated model in the order they were made, the candidate last."""
    decision: GateDecision
    gates: tuple[PhaseGates, ...] = ()
    """Decisions of the mismatch gate in every RL phase that led to it."""
    verifiers: VerifierExamination = NO_PROBLEMS
    """Error rates of the verifiers of its problems."""


def release(
    settings: ReleaseSettings, candidate: ReleaseCandidate, store: str, out: Path
) -> dict[str, float | int | str]:
    """Write the release folder of a candidate, passed or not, and return its facts.

    Raises:
        DataError: the checkpoint is not what was evaluated, or is not in its own chain.
    """
    if (
        not candidate.progression
        or candidate.progression[-1].checkpoint != candidate.checkpoint.digest
    ):
        evaluated = candidate.progression[-1].checkpoint if candidate.progression else "nothing"
        raise DataError(
            f"the last evaluation is of {evaluated}, the candidate is "
            f"{candidate.checkpoint.digest}. Evaluate the candidate and put it last."
        )
    statements = chain(store, [candidate.checkpoint.statement, *candidate.evidence])
    manifest = release_manifest(
        settings.name,
        candidate.checkpoint,
        statements,
        store,
        candidate.decision,
        candidate.gates,
        candidate.verifiers,
    )
    shutil.copytree(candidate.folder, out, dirs_exist_ok=True)
    (out / MANIFEST).unlink(missing_ok=True)
    payload = canonical_json(manifest)
    write_bytes(out / MANIFEST_FILE, payload)
    write_bytes(out / GATE_FILE, canonical_json(candidate.decision))
    license = base_license(store, statements)
    base = base_id(store, statements)
    raw = origins.listed_raw_files(store, statements.values())
    card = model_card(
        manifest, candidate.progression, statements, license, base, candidate.folder, raw
    )
    write_bytes(out / CARD_FILE, card.encode())
    (out / EVAL_RESULTS).parent.mkdir(exist_ok=True)
    write_bytes(out / EVAL_RESULTS, eval_results(manifest, candidate.progression[-1]))
    bill = bill_of_materials(
        manifest,
        candidate.progression[-1],
        statements,
        store,
        candidate.folder,
        limits(manifest, candidate.progression),
    )
    write_bytes(out / BOM_FILE, canonical_json(bill))
    return {
        "released": int(candidate.decision.released),
        "manifest_sha256": sha256_bytes(payload),
        "version": manifest.version,
        "statements": len(manifest.statements),
        "objects": len(manifest.objects),
        "raw_files": len(manifest.raw_files),
        **_accuracies(candidate.progression[-1]),
        **_error_rates(candidate.verifiers),
    }


def _error_rates(examination: VerifierExamination) -> dict[str, str]:
    """Error rates of the verifiers as they are stated, and the digest of their evidence."""
    stated = {
        f"{kind}/{one.verifier}": stated_rate(rate)
        for one in examination.rates
        for kind, rate in (
            ("false_positive", one.false_positive),
            ("false_negative", one.false_negative),
        )
    }
    return {**stated, "verifier_evidence_sha256": examination.sha256} if stated else {}


def base_id(store: str, statements: Mapping[str, Statement]) -> str:
    """Read the name on the hub that the configuration of the base model has; '' without one."""
    for statement in statements.values():
        for output in statement.outputs if statement.stage == "ingest/base" else ():
            place = store_at(origins.object_uri(store, output.uri, output.digest))
            if CONFIG not in place.list_files():
                continue
            try:
                name = json.loads(place.read_bytes(CONFIG)).get("_name_or_path", "")
            except (ValueError, AttributeError):
                continue
            if _HUB_ID.fullmatch(str(name)):
                return str(name)
    return ""


def _accuracies(evaluation: EvaluationReport) -> dict[str, float]:
    """Held-out accuracy by suite, for comparison of releases in MLflow."""
    return {f"accuracy/{suite.suite}": suite.accuracy for suite in evaluation.suites}
