"""Signatures of working files: what a run believes of what an earlier one left, until it has a
statement.

Committed states, steps that were stopped, parts of a curation, answers of an evaluation, results of
finished work, the index of rows and the marks of an inbox are read by later runs and decide what
they do. Each lies in an envelope whose type names its kind and its name, so that a genuine one is
not believed under another name.

Where there is no key (a pod without one), nothing is signed and nothing can be checked.
"""

from pydantic import ValidationError

from tasks.errors import TamperError
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    TRUSTED_VARIABLE,
    find_signer,
    trusted_keys,
)
from tasks.store.files import canonical_json


def seal(kind: str, name: str, payload: bytes) -> bytes:
    """Put a payload into an envelope that this run's key signs.

    Args:
        kind: 'state', 'rollouts', 'pause', 'parts', 'answers', 'results', 'index', 'inbox',
            'execution', 'tombstone'.
        name: of the work; a reader must expect the same one.
        payload: any bytes.
    """
    signer, type_ = find_signer(), type_of(kind, name)
    signatures = [signer.sign(payload, type_)] if signer else []
    return canonical_json(dsse.seal(payload, signatures, type_))


def unseal(kind: str, name: str, content: bytes, where: str) -> bytes:
    """Return the payload of an envelope that a trusted key signed.

    Raises:
        TamperError: it is none, of another kind or name, or nobody trusted signed it.
    """
    try:
        envelope = dsse.Envelope.model_validate_json(content)
        payload = dsse.payload_of(envelope, type_ := type_of(kind, name))
    except ValidationError as error:
        raise TamperError(f"{where} is not signed; {_HOW}") from error
    except ValueError as error:
        raise TamperError(f"{where}: {error}; {_HOW}") from error
    trusted = trusted_keys()
    fit = {one.keyid for one in envelope.signatures if dsse.is_valid(one, payload, type_)}
    # What an earlier key signed has no end of its own: a key that was revoked signs no more work.
    believed = {key for key, limit in trusted.items() if limit.last is None}
    if trusted and not fit & believed:
        who = ", ".join(dsse.fingerprint(key)[:16] for key in sorted(fit)) or "nobody"
        raise TamperError(f"{where} is signed by {who}, not by this run's key; {_HOW}")
    return payload


_HOW = (
    "something else wrote it. Find out what did, delete it and run again; if another machine made "
    f"it, give both one {KEY_VARIABLE}, or name the other's public key in {TRUSTED_VARIABLE}."
)


def type_of(kind: str, name: str) -> str:
    """Return the payload type of an envelope, which is part of what is signed."""
    return f"application/vnd.eachprompt.{kind}; name={name}"
