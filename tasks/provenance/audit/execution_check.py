"""Who ran the stages of a chain, when and where: records, signed attestations and MLflow compared.

A statement is the same whoever makes it. Its executions are signed beside it, in
`attestations/`.
"""

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from data_schemas.audits import Finding
from data_schemas.statements import ExecutionRecord, Statement
from tasks.errors import DataError
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.descriptions import EXECUTION, FLYTE_EXECUTION, LAUNCH_PLAN, VERSION
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.working import type_of
from tasks.provenance.lineage.statements import ATTESTATIONS, EXECUTION_KIND
from tasks.store.interface import store_at
from tasks.store.location import identity

EXECUTIONS = "executions"
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
    _check_records(evidence, records)
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


def _check_records(evidence: Evidence, records: Mapping[str, ExecutionRecord]) -> None:
    """Compare the records that lie in the store with those that were signed."""
    present = dict(_files(evidence, EXECUTIONS))
    for name, content in present.items():
        record = _parse(content)
        if record is None or not _is_vouched(record.statement, evidence):
            continue  # a statement that nobody vouches for has its finding
        where = f"{evidence.store}/{EXECUTIONS}/{name}"
        if name not in records:
            evidence.add(record.statement, where, "no attestation of it is signed by --key")
        elif records[name] != record:
            evidence.add(record.statement, where, "is not what its attestation says")
    for name, record in records.items():
        if name not in present and record.statement in evidence.statements:
            where = f"{evidence.store}/{EXECUTIONS}/{name}"
            evidence.add(record.statement, where, "gone, while its attestation is here")


def _is_vouched(statement: str, evidence: Evidence) -> bool:
    signers = evidence.signers.get(statement, ())
    return statement in evidence.statements and any(
        evidence.vouches(signer, statement) for signer in signers
    )


def _attested(evidence: Evidence) -> Iterator[tuple[str, ExecutionRecord]]:
    own = identity(evidence.store)
    for name, content in _files(evidence, ATTESTATIONS):
        try:
            envelope = dsse.Envelope.model_validate_json(content)
        except ValueError:
            continue
        for signed_name in (f"{own}/{name}", name):  # one of an earlier version names no store
            type_ = type_of(EXECUTION_KIND, signed_name)
            try:
                payload = dsse.payload_of(envelope, type_)
            except ValueError:
                continue
            record = _parse(payload)
            fit = [one.keyid for one in envelope.signatures if dsse.is_valid(one, payload, type_)]
            if record and any(evidence.vouches(signer, record.statement) for signer in fit):
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
