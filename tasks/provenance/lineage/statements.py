"""Statements on disk: the chain of inputs and outputs.

A statement lies at `<store>/statements/<digest>.json`, in an envelope with its signatures, and
is named by the sha256 of the payload, which contains the digests of its inputs' statements:
nobody can change a link without changing every name after it, and nobody without the key can
sign a new chain. A statement without an envelope is of version 0.1.0: canonical JSON that nobody
signed. `<store>/executions/<execution>/` records who ran a stage, when and where; the same
record lies signed in `<store>/attestations/`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from data_schemas.statements import ExecutionRecord, Statement
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage import attestation
from tasks.provenance.lineage.signatures import dsse, keys
from tasks.provenance.lineage.signatures.working import seal
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.location import identity

ATTESTATIONS = "attestations"
"""Folder of the signed execution records."""
EXECUTION_KIND = "execution"


@dataclass(frozen=True, slots=True)
class AttestedStatement:
    """A statement and who vouches for it."""

    statement: Statement
    signers: tuple[str, ...]
    """Public keys whose signatures fit; nobody's for a statement of version 0.1.0."""


def statement_uri(store: str, digest: str) -> str:
    """Return the uri of a statement."""
    return f"{store}/statements/{digest}.json"


def save_statement(store: str, statement: Statement) -> str:
    """Sign a statement, store it write-once and return its digest.

    Where it is there already, signed by others, a signature is added.

    Raises:
        TamperError: something else lies under its name.
        SettingsError: there is no usable key.
    """
    payload = attestation.to_payload(statement)
    digest = sha256_bytes(payload)
    place = store_at(statement_uri(store, digest))
    signer = keys.find_signer(store)
    mine = [signer.sign(payload)] if signer else []
    if place.create_bytes(canonical_json(dsse.seal(payload, mine))):
        return digest
    try:
        others = open_statement(place.read_bytes(), digest, store)
    except DataError as error:
        raise TamperError(
            f"{place.uri}: not the statement it is named after; restore or delete it"
        ) from error
    if mine and mine[0].keyid not in others.signers:
        envelope = dsse.Envelope.model_validate_json(place.read_bytes())
        place.write_bytes(canonical_json(dsse.seal(payload, [*envelope.signatures, *mine])))
    return digest


def load_statement(store: str, digest: str) -> Statement:
    """Read a statement and check that it is the one it is named after.

    Raises:
        DataError: it is gone.
        TamperError: its bytes were changed.
    """
    payload = store_at(statement_uri(store, digest)).read_bytes()
    return open_statement(payload, digest, store).statement


def open_statement(content: bytes, digest: str, store: str) -> AttestedStatement:
    """Check what lies under the name of a statement.

    Raises:
        TamperError: it is another statement, was changed, or has a signature that does not fit.
        DataError: it is not a statement of this version.
    """
    uri = statement_uri(store, digest)
    envelope = _envelope(content)
    if envelope is None:
        _check_digest(content, digest, uri)
        try:
            statement = Statement.model_validate_json(content)
        except ValidationError as error:
            raise DataError(f"{uri} is not a statement of this version: {error}") from error
        attestation.check_parts(statement, uri)
        return AttestedStatement(statement, ())
    payload = signed_payload(envelope, content, uri)
    _check_digest(payload, digest, uri)
    statement = attestation.from_payload(payload, store, uri)
    return AttestedStatement(statement, tuple(one.keyid for one in envelope.signatures))


def signed_payload(
    envelope: dsse.Envelope, content: bytes, uri: str, kind: str = dsse.PAYLOAD_TYPE
) -> bytes:
    """Return what is in an envelope, of which every signature fits.

    Args:
        envelope: in the file.
        content: of the file.
        uri: of the file, for messages.
        kind: of the payload.

    Raises:
        TamperError: it is of another kind, not in the only spelling, or a signature does not fit.
    """
    try:
        payload = dsse.payload_of(envelope, kind)
    except ValueError as error:
        raise TamperError(f"{uri}: {error}") from error
    if canonical_json(envelope) != content:
        raise TamperError(f"{uri}: the envelope is not as it was written")
    for signature in envelope.signatures:
        if not dsse.is_valid(signature, payload, kind):
            raise TamperError(f"{uri}: the signature of key {signature.keyid} does not fit")
    return payload


def _envelope(content: bytes) -> dsse.Envelope | None:
    try:
        return dsse.Envelope.model_validate_json(content)
    except ValidationError:
        return None


def _check_digest(payload: bytes, digest: str, uri: str) -> None:
    if (result := sha256_bytes(payload)) != digest:
        raise TamperError(f"{uri}: sha256 is {result}, recorded {digest}")


def chain(store: str, roots: Iterable[str]) -> dict[str, Statement]:
    """Load every statement that led to `roots`, keyed by digest, each after its producers.

    Raises:
        DataError: one of them is gone.
        TamperError: one of them was changed.
    """
    results: dict[str, Statement] = {}
    opened: dict[str, Statement] = {}
    # Not recursive: a model that was retrained every night has a very long chain.
    waiting = list(roots)
    while waiting:
        current = waiting.pop()
        if current in results or not current:
            continue
        if current in opened:
            results[current] = opened[current]
            continue
        opened[current] = load_statement(store, current)
        waiting.append(current)
        waiting += [item.statement for item in opened[current].inputs]
    return results


def save_execution(store: str, record: ExecutionRecord) -> None:
    """Store when and where a stage ran, and sign it; a retried stage replaces its record.

    A statement is the same whoever makes it, in whichever store, so who, when and where are signed
    beside it, for this store.
    """
    name = f"{record.execution}/{record.stage.replace('/', '.')}.json"
    payload = canonical_json(record)
    sealed = seal(EXECUTION_KIND, f"{identity(store)}/{name}", payload)
    store_at(f"{store}/{ATTESTATIONS}/{name}").write_bytes(sealed)
    store_at(f"{store}/executions/{name}").write_bytes(payload)


def load_executions(store: str, execution: str) -> list[ExecutionRecord]:
    """Read what one workflow execution really ran, oldest first; cached stages have no record."""
    folder = store_at(f"{store}/executions/{execution}")
    records = [
        ExecutionRecord.model_validate_json(folder.read_bytes(name)) for name in folder.list_files()
    ]
    return sorted(records, key=lambda record: record.started)


def run_key(execution: str, stage: str) -> str:
    """Name the run of a stage in MLflow; all attempts at it in one execution share the name."""
    return f"{execution}.{stage.replace('/', '.')}"


def flat_settings(settings: BaseModel) -> dict[str, str]:
    """Name every leaf of a settings model with dots, as text."""
    return flat_values(settings.model_dump(mode="json"))


def flat_values(values: Mapping[str, object]) -> dict[str, str]:
    """Name every leaf of nested settings with dots, as text."""
    flat: dict[str, str] = {}

    def visit(prefix: str, value: object) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                visit(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            flat[prefix] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)

    visit("", values)
    return flat
