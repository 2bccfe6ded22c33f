"""What a release says about itself: signature, manifest, bill of materials, files."""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from data_schemas.reports import ReleaseManifest
from tasks.errors import DataError, TamperError
from tasks.provenance.audit.component_check import bom_problems
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import UnreadableEvidence, read_record
from tasks.provenance.audit.target import Target
from tasks.provenance.lineage.lookup import Version
from tasks.provenance.lineage.origins import public_names
from tasks.provenance.lineage.promotions import approvals, promotion_problems, promotions
from tasks.provenance.lineage.registry import (
    BOM_FILE,
    CARD_FILE,
    GATE_FILE,
    MANIFEST_FILE,
    MANIFEST_TAG,
    PREVIOUS,
    RELEASED,
)
from tasks.provenance.lineage.releases import select
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.model import signature_uri, signers_of
from tasks.provenance.lineage.statements import statement_uri
from tasks.store.files import sha256_bytes

OWN_FILES = {MANIFEST_FILE, GATE_FILE, CARD_FILE, BOM_FILE}
"""What a release adds to the files of its checkpoint."""


def check_release(target: Target, evidence: Evidence) -> None:
    """Check a release folder and its manifest, and follow it if the chain is broken.

    Of another artifact, only what a registered model should have been is said.
    """
    version, root, digest = target.version, target.statement, target.digest
    uri = f"{evidence.store}/objects/{digest[:16]}"
    sound = evidence.check_object(root, uri, digest)
    listed = evidence.listed_files(uri, digest)
    where = f"{uri}/{MANIFEST_FILE}"
    _check_approved(version, root, evidence)
    if MANIFEST_FILE not in listed:
        if sound and version:
            _check_absent(version, root, uri, digest in evidence.buried, evidence)
        return
    if version:
        _check_current(version, target, listed[MANIFEST_FILE], evidence)
    _check_signature(root, digest, evidence)
    try:
        payload = read_record(where)
        if sha256_bytes(payload) != listed[MANIFEST_FILE]:
            return  # reported with the object; its list is no longer evidence
        manifest = ReleaseManifest.model_validate_json(payload)
    except DataError:
        return  # reported with the object
    except ValidationError as error:
        evidence.add(root, where, f"not a release manifest: {error}")
        return
    reached = evidence.statements.keys() | evidence.damaged
    for statement in manifest.statements:
        evidence.visit(statement)
    for name in manifest.objects:
        evidence.check_object(root, f"{evidence.store}/objects/{name[:16]}", name)
    _check_manifest(target, manifest, reached, evidence)
    _check_copy(root, uri, digest, manifest.checkpoint, evidence)
    if BOM_FILE in listed and not any(evidence.findings.values()):
        # With parts unreadable, claims about them have no evidence.
        _check_bill(root, f"{uri}/{BOM_FILE}", listed, evidence)


def _check_absent(
    version: Version, root: str, uri: str, is_buried: bool, evidence: Evidence
) -> None:
    """What was deleted on purpose says no more of itself, but it must not be the released one."""
    if not is_buried:
        evidence.add(root, uri, f"holds no {MANIFEST_FILE}, so it is not a release")
    elif RELEASED in version.aliases:
        evidence.add(root, uri, f"was deleted, although it has the alias {RELEASED!r}")


def approvers(target: Target, evidence: Evidence) -> str:
    """Name the keys of others that approved a release, and how many are missing.

    '' where its settings ask for none.
    """
    statement = evidence.statements.get(target.statement)
    if statement is None or not json.loads(statement.settings).get("approvals"):
        return ""
    keys, missing = approvals(target.statement, evidence.store, evidence.keys)
    names = ", ".join(sorted(fingerprint(one)[:16] for one in keys)) or "nobody"
    return f"by key {names}" + (f"; {missing} more are asked for" if missing else "")


def _check_approved(version: Version | None, root: str, evidence: Evidence) -> None:
    """A release whose settings ask for other keys is not the released one without them."""
    _, missing = approvals(root, evidence.store, evidence.keys)
    if version and missing and RELEASED in version.aliases:
        about = f"MLflow model version {version.name}/{version.number}"
        problem = f"has the alias {RELEASED!r}, but {missing} approvals by other keys are missing"
        evidence.add(MODEL, about, problem)


def _check_current(version: Version, target: Target, manifest: str, evidence: Evidence) -> None:
    """The name is the release's own, and the alias is where the last promotion put it."""
    about = f"MLflow model version {version.name}/{version.number}"
    if (tag := version.tags.get(MANIFEST_TAG, "missing")) != manifest:
        evidence.add(MODEL, about, f"{MANIFEST_TAG} is {tag}, committed {manifest}")
    statement = evidence.statements.get(target.statement)
    if statement is not None:
        name = json.loads(statement.settings).get("name")
        if name != version.name:
            evidence.add(MODEL, about, f"is a copy of a release of {name} under another name")
    result = promotions(version.name, evidence.store, evidence.keys)
    before = select(PREVIOUS, result)
    if PREVIOUS in version.aliases and before and before.checkpoint != target.digest:
        problem = f"by the promotions that is {before.release}"
        evidence.add(MODEL, about, f"has the alias {PREVIOUS!r}, but {problem}")
    for statement_digest, problem in promotion_problems(result):
        evidence.add(MODEL, statement_uri(evidence.store, statement_digest), problem)
    if not result:
        return  # released by a version that counted no promotions
    is_current = target.digest == result[-1].checkpoint
    if RELEASED in version.aliases and not is_current:
        problem = f"the last promotion, {result[-1].number}, is of {result[-1].release}"
        evidence.add(MODEL, about, f"has the alias {RELEASED!r}, but {problem}")
    if is_current and not target.note and RELEASED not in version.aliases:
        problem = f"promotion {result[-1].number}, the last one, gave it that alias"
        evidence.add(MODEL, about, f"lacks the alias {RELEASED!r}, although {problem}")


def _check_signature(root: str, digest: str, evidence: Evidence) -> None:
    """The signature of the release folder is of its files, and by a key of the auditor."""
    where = signature_uri(evidence.store, digest)
    listed = evidence.listed_files(f"{evidence.store}/objects/{digest[:16]}", digest)
    try:
        signers = signers_of(read_record(where), digest, listed)
    except UnreadableEvidence as error:
        if evidence.keys is not None or evidence.signers.get(root):
            evidence.add(root, where, str(error))
    except TamperError as error:
        if listed:  # otherwise the object has its finding
            evidence.add(root, where, str(error))
    else:
        evidence.check_signers(root, where, signers)


def _check_manifest(
    target: Target, manifest: ReleaseManifest, reached: set[str], evidence: Evidence
) -> None:
    version, root = target.version, target.statement
    where = f"{MANIFEST_FILE} of {manifest.name}/{version.number if version else manifest.version}"
    if version and RELEASED in version.aliases and not manifest.gate.released:
        about = f"MLflow model version {version.name}/{version.number}"
        evidence.add(MODEL, about, f"has the alias {RELEASED!r} although its gate refused it")
    for missing in sorted(reached - set(manifest.statements) - {root}):
        evidence.add(root, where, f"does not list the statement {missing} of its chain")
    if any(evidence.findings.values()):
        return  # with parts unreadable, the other lists must differ
    for extra in sorted(set(manifest.statements) - reached):
        evidence.add(root, where, f"lists the statement {extra}, which its chain does not reach")
    expected = evidence.raw_files
    if expected != manifest.raw_files:  # an earlier version wrote the places of raw files
        expected = public_names(expected)
    for name, sha256 in sorted(expected.items() ^ manifest.raw_files.items()):
        evidence.add(root, where, f"raw file {name} {sha256} is in the manifest or the chain only")


def _check_copy(root: str, uri: str, digest: str, checkpoint: str, evidence: Evidence) -> None:
    """The model files in the release folder are those of the checkpoint it names."""
    here = evidence.listed_files(uri, digest)
    there = evidence.listed_files(f"{evidence.store}/objects/{checkpoint[:16]}", checkpoint)
    for name, sha256 in there.items():
        if here.get(name) != sha256 and name not in OWN_FILES:
            problem = f"is not the file of checkpoint {checkpoint}, whose sha256 is {sha256}"
            evidence.add(root, f"{uri}/{name}", problem)


def _check_bill(root: str, where: str, listed: Mapping[str, str], evidence: Evidence) -> None:
    """Every claim of the bill of materials is one that was re-hashed."""
    try:
        bill = read_record(where)
    except UnreadableEvidence:
        return  # reported with the object
    statement = evidence.statements.get(root)
    if sha256_bytes(bill) != listed[BOM_FILE] or statement is None:
        return
    hashed = evidence.objects | set(evidence.raw_files.values()) | set(listed.values())
    for problem in bom_problems(bill, hashed, evidence.statements, statement.facts):
        evidence.add(root, where, problem)
