"""What an audit compares beside the chain: components, time stamps, executions, releases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cryptography.x509 import Certificate
from pydantic import ValidationError

from data_schemas.reports import ReleaseManifest
from data_schemas.statements import ExecutionRecord, Finding, Statement
from tasks.errors import DataError, TamperError
from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.provenance.audit.reading import Unreadable, read_record
from tasks.provenance.audit.target import Target
from tasks.provenance.lineage.descriptions import EXECUTION, FLYTE_EXECUTION, LAUNCH_PLAN, VERSION
from tasks.provenance.lineage.lookup import Lookup, Version
from tasks.provenance.lineage.origins import public_names, public_settings
from tasks.provenance.lineage.promotions import NUMBER, promotion_problems, promotions
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
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.model import signature_uri, signers_of
from tasks.provenance.lineage.signatures.time_stamps import read_stamp, stamp_uri
from tasks.provenance.lineage.signatures.working import type_of
from tasks.provenance.lineage.statements import ATTESTATIONS, EXECUTION_KIND, statement_uri
from tasks.provenance.release.bom import software
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at

# Comparison of a release's bill of materials with what the audit re-hashed.
#
# The bill's own bytes are those of the release. Here every claim in it is looked up: each digest
# among the objects, files and raw files that were hashed again, each step among the statements,
# each accuracy among the facts of the release, and the software in the lock files, where this
# version of the project has them.

Json = dict[str, Any]


def bom_problems(
    bill: bytes, hashed: set[str], statements: Mapping[str, Statement], facts: Mapping[str, object]
) -> Iterator[str]:
    """Yield every claim that the evidence does not support.

    Args:
        bill: the file's content.
        hashed: sha256 of everything that was hashed again, from object to raw file.
        statements: of the chain, by digest.
        facts: of the release.
    """
    try:
        yield from _problems(json.loads(bill), hashed, statements, facts)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        yield f"is no bill of materials of this version: {error!r:.200}"


def _problems(
    bill: Json, hashed: set[str], statements: Mapping[str, Statement], facts: Mapping[str, object]
) -> Iterator[str]:
    model = bill["metadata"]["component"]
    hashed = hashed | {one.lock for one in statements.values()}
    yield from _software(bill, statements)
    for component in (model, *model["components"], *bill["components"]):
        for entry in component["hashes"]:
            if entry["alg"] != "SHA-256" or entry["content"] not in hashed:
                digest = f"{entry['alg']} {entry['content']}"
                yield f"{component['bom-ref']} has {digest}, which nothing has"
    for metric in model["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]:
        fact = facts.get(f"{metric['type']}/{metric['slice']}")
        if repr(fact) != metric["value"]:
            about = f"{metric['type']} on {metric['slice']}"
            yield f"{about} is {metric['value']}, the release has {fact}"
    listed = {one["uid"]: one for one in bill["formulation"][0]["workflows"]}
    for uid, workflow in listed.items():
        statement = statements.get(uid)
        if statement is None:
            yield f"the step {workflow['name']} has the statement {uid}, which the chain lacks"
        elif _claims(workflow) not in (_recorded(statement), _published(statement)):
            yield f"the step {workflow['name']} is not as in its statement {uid}"


def _software(bill: Json, statements: Mapping[str, Statement]) -> Iterator[str]:
    """Compare lock files with those of this version of the project; others by their digest only."""
    claimed = [one for one in bill["components"] if one["bom-ref"].startswith("lock:")]
    for one in software(statements):
        if "components" in one and claimed and one not in claimed:
            yield f"{one['name']} pins other software than {one['bom-ref']} lists"


def _claims(workflow: Json) -> Json:
    return {"stage": workflow["name"]} | {
        one["name"].removeprefix("eachprompt:"): one["value"] for one in workflow["properties"]
    }


def _published(statement: Statement) -> Json:
    """Settings stand in a bill without places; in one of an earlier version, as recorded."""
    return _recorded(statement.model_copy(update={"settings": public_settings(statement)}))


def _recorded(statement: Statement) -> Json:
    values = {
        "stage": statement.stage,
        "settings": statement.settings,
        "code": " ".join(statement.code),
        "packages": statement.environment,
        "lock": statement.lock,
        "container": statement.container,
    }
    return {name: value for name, value in values.items() if value}


# When a promotion existed, by the word of a time stamp service that the auditor knows.


def check_stamp(target: Target, evidence: Evidence, authorities: Sequence[Certificate]) -> str:
    """Return when a promotion was stamped and by whom; a finding if it was not.

    Args:
        target: that is audited. '' is returned if it is no promotion.
        evidence: receives the finding.
        authorities: certificates of services; without any, no time is read.
    """
    statement = evidence.statements.get(target.statement)
    if not authorities or statement is None or NUMBER not in statement.facts:
        return ""
    where = stamp_uri(evidence.store, target.statement)
    try:
        stamp = read_stamp(read_record(where), target.statement, authorities)
    except DataError as error:
        evidence.add(target.statement, where, str(error))
        return ""
    return f"{stamp.time:%Y-%m-%d %H:%M:%S} UTC by {stamp.authority}"


# Who ran the stages of a chain, when and where: records, signed attestations and MLflow compared.
#
# A statement is the same whoever makes it. Its executions are signed beside it, in
# `attestations/`.

_WHO = (
    *("mlflow.user", "mlflow.source.git.commit", "mlflow.docker.image.uri"),
    *(FLYTE_EXECUTION, LAUNCH_PLAN, VERSION),
)
"""Tags of a run that say who made it, and of what."""


def check_executions(evidence: Evidence, lookup: Lookup | None) -> str:
    """Add a finding for every record or run that differs from its signed attestation.

    Whoever deletes both may say in MLflow what he likes: a statement of the chain that nothing
    signed says who made is a finding, too.

    Returns:
        How many have one; without keys of the auditor anybody could have signed.
    """
    if evidence.keys is None:
        return "not compared"
    records = dict(_attested(evidence))
    for name, content in _files(evidence, "executions"):
        record = _parse(content)
        if record is None or not _is_vouched(record.statement, evidence):
            continue  # a statement that nobody vouches for has its finding
        where = f"{evidence.store}/executions/{name}"
        if name not in records:
            evidence.add(record.statement, where, "no attestation of it is signed by --key")
        elif records[name] != record:
            evidence.add(record.statement, where, "is not what its attestation says")
    attested = {record.statement for record in records.values()}
    vouched = [digest for digest in evidence.statements if _is_vouched(digest, evidence)]
    for digest in vouched:
        if digest not in attested:
            where = f"{evidence.store}/{ATTESTATIONS}"
            evidence.add(digest, where, "gone: no signed record says who ran this stage, and when")
    if lookup is not None:
        for node, finding in _runs(lookup, records, evidence.statements):
            evidence.findings[node].append(finding)
    return f"{len(attested & {*vouched})} of {len(vouched)} signed"


_FOLDERS = ("objects", "statements", "signatures", "executions", ATTESTATIONS, "pages", "mlflow.db")
_LARGEST_KEY = 2**16
"""Bytes; a private key in PEM has a few hundred."""


def check_place(evidence: Evidence) -> None:
    """Add a finding where a part of the store lies outside of it, or a private key inside."""
    folder = store_at(evidence.store).local_path
    if folder is None or not folder.is_dir():
        return
    for name in _FOLDERS:
        if (folder / name).is_symlink():
            problem = "is a link; its content lies outside the store"
            evidence.add(MODEL, str(folder / name), problem)
    for path in sorted(folder.iterdir()):
        try:
            if path.lstat().st_size <= _LARGEST_KEY and b"PRIVATE KEY-----" in read_record(
                str(path)
            ):
                problem = "is a private key; whoever can read the store can sign"
                evidence.add(MODEL, str(path), problem)
        except (DataError, OSError):
            continue


def _is_vouched(statement: str, evidence: Evidence) -> bool:
    signers = evidence.signers.get(statement, ())
    return statement in evidence.statements and any(
        evidence.vouches(signer, statement) for signer in signers
    )


def _attested(evidence: Evidence) -> Iterator[tuple[str, ExecutionRecord]]:
    for name, content in _files(evidence, ATTESTATIONS):
        try:
            envelope = dsse.Envelope.model_validate_json(content)
            payload = dsse.payload_of(envelope, type_ := type_of(EXECUTION_KIND, name))
        except ValueError:
            continue
        record = _parse(payload)
        signers = [one.keyid for one in envelope.signatures if dsse.is_valid(one, payload, type_)]
        if record and any(evidence.vouches(signer, record.statement) for signer in signers):
            yield name, record


def _files(evidence: Evidence, folder: str) -> Iterator[tuple[str, bytes]]:
    place = f"{evidence.store}/{folder}"
    for name in store_at(place).list_files():
        try:
            yield name, read_record(f"{place}/{name}")
        except DataError:
            continue


def _parse(content: bytes) -> ExecutionRecord | None:
    try:
        return ExecutionRecord.model_validate_json(content)
    except ValidationError:
        return None


def _runs(
    lookup: Lookup, records: Mapping[str, ExecutionRecord], statements: Mapping[str, Statement]
) -> Iterator[tuple[str, Finding]]:
    for record in records.values():
        if record.statement not in statements:
            continue
        for run in lookup.runs(record.statement):
            if run.tags.get(EXECUTION) != record.execution:
                continue
            for tag in _WHO:
                tag_value, signed_value = run.tags.get(tag, ""), record.tags.get(tag, "")
                if tag_value != signed_value:
                    problem = (
                        f"{tag} is {tag_value or 'missing'}, signed as {signed_value or 'missing'}"
                    )
                    about = f"MLflow run {run.id} ({record.stage})"
                    yield record.statement, Finding(object=about, problem=problem)


# What a release says about itself: signature, manifest, bill of materials, files.

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
    except Unreadable as error:
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
    except Unreadable:
        return  # reported with the object
    statement = evidence.statements.get(root)
    if sha256_bytes(bill) != listed[BOM_FILE] or statement is None:
        return
    hashed = evidence.objects | set(evidence.raw_files.values()) | set(listed.values())
    for problem in bom_problems(bill, hashed, evidence.statements, statement.facts):
        evidence.add(root, where, problem)
