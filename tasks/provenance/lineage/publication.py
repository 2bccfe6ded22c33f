"""Statements as they are published: without the places of the machine that made them.

A statement without any is published as it is. Of another one, the form without places is signed
once more, in an envelope of its own kind that names the statement it stands for. So nothing of the
chain is taken on trust of anybody but the key that made the release; a store accepts no such form.

    provenance/statements/<digest>.json       of every stage, in either form
    provenance/objects/<name>/MANIFEST.json   files of the release, and of the checkpoint in it
    provenance/model.sig                      signature of the files in OpenSSF's form
    provenance/keys.pem                       public keys of all of these
"""

import json

from pydantic import ValidationError

from data_schemas.statements import Input, Statement
from tasks.provenance.lineage import attestation, origins
from tasks.provenance.lineage.places import ORIGIN, without_places
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.working import seal, type_of
from tasks.provenance.lineage.statements import (
    AttestedStatement,
    open_statement,
    signed_payload,
    statement_uri,
)
from tasks.store.files import canonical_json

KIND = "publication"
SIGNATURE = "model.sig"
KEYS = "keys.pem"


def without_origins(statement: Statement) -> Statement:
    """Return a statement with names in the stead of places; itself if it has none."""
    return statement.model_copy(
        update={
            "settings": origins.public_settings(statement),
            "inputs": tuple(map(_without_origin, statement.inputs)),
            "facts": without_places(json.loads(canonical_json(statement.facts))),
        }
    )


def _without_origin(item: Input) -> Input:
    if not origins.is_source(item) or item.uri.startswith(ORIGIN):
        return item
    return item.model_copy(update={"uri": ORIGIN + origins.public_name(item.uri, item.digest)})


def published_bytes(content: bytes, digest: str, store: str) -> bytes:
    """Return a statement of a store as it is published.

    Args:
        content: of its file.
        digest: of the statement.
        store: it lies in.

    Raises:
        TamperError: it is another statement, or was changed.
        SettingsError: there is no key to sign with.
    """
    attested = open_statement(content, digest, store)
    if without_origins(attested.statement) == attested.statement:
        return content
    return seal(KIND, digest, attestation.to_payload(without_origins(attested.statement)))


def is_own_form(content: bytes) -> bool:
    """True if a statement was signed once more to be published."""
    try:
        envelope = dsse.Envelope.model_validate_json(content)
    except ValidationError:
        return False
    return envelope.payloadType != dsse.PAYLOAD_TYPE


def open_published(content: bytes, digest: str, store: str) -> AttestedStatement:
    """Check a statement of a published release, in either form.

    Args:
        content: of its file.
        digest: of the statement.
        store: folder `provenance`.

    Raises:
        TamperError: it is another statement, was changed, or has a signature that does not fit.
        DataError: it is no statement of this version.
    """
    if not is_own_form(content):
        return open_statement(content, digest, store)
    uri = statement_uri(store, digest)
    envelope = dsse.Envelope.model_validate_json(content)
    payload = signed_payload(envelope, content, uri, type_of(KIND, digest))
    statement = attestation.from_payload(payload, store, uri)
    return AttestedStatement(statement, tuple(one.keyid for one in envelope.signatures))
