"""Signature of released weights in the format of OpenSSF's model-signing 1.1.

    model_signing verify key OBJECT --signature SIGNATURE --public_key PUBLIC

A sigstore bundle v0.3 with a DSSE envelope, whose in-toto Statement lists every file by sha256. It
lies beside the object, at `<store>/signatures/<name of the object>.sig`, and covers all of its
files including MANIFEST.json, whose digests are taken over: weights are not hashed again.

Differs from the library: the same model is signed with the same bytes, and 16 packages that only
sigstore identities need are not installed. `make test-tools` checks the result with the library.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from tasks.errors import TamperError
from tasks.provenance.lineage.attestation import STATEMENT_TYPE
from tasks.provenance.lineage.signatures import dsse, keys
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files

PREDICATE_TYPE = "https://model_signing/signature/v1.0"
_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_SERIALIZATION = {
    "method": "files",
    "hash_type": "sha256",
    "allow_symlinks": False,
}
HUB_WRITES = (".cache", ".gitattributes", "README.md")
"""What the hub and its client add to a model, or edit: bookkeeping, and the card."""
PROVENANCE = "provenance"
"""Folder of a published release with what proves it, each part signed on its own."""


def signature_uri(store: str, digest: str) -> str:
    """Return the uri of an object's signature."""
    return f"{store}/signatures/{digest[:16]}.sig"


def sign_model(store: str, digest: str) -> str:
    """Sign an object of a store and return the uri of the signature; '' where there is no key.

    Raises:
        SettingsError: there is no usable key.
        TamperError: the object's manifest is not the one it is named after.
    """
    signer = keys.find_signer(store)
    if signer is None:
        return ""
    uri = f"{store}/objects/{digest[:16]}/{MANIFEST}"
    manifest = store_at(uri).read_bytes()
    if (result := sha256_bytes(manifest)) != digest:
        raise TamperError(f"{uri}: sha256 is {result}, recorded {digest}")
    payload = to_payload(digest, manifest_files(manifest, uri))
    place = store_at(signature_uri(store, digest))
    place.write_bytes(bundle_of(dsse.seal(payload, [signer.sign(payload)])))
    return place.uri


def bundle_of(envelope: dsse.Envelope) -> bytes:
    """Write a sigstore bundle around an envelope with one signature."""
    (signature,) = envelope.signatures
    material = {"publicKey": {"hint": _hint(signature.keyid)}, "tlogEntries": []}
    return canonical_json(
        {
            "mediaType": _MEDIA_TYPE,
            "verificationMaterial": material,
            "dsseEnvelope": envelope.model_dump(),
        }
    )


def to_payload(digest: str, files: Mapping[str, str]) -> bytes:
    """List an object's files, and its manifest, as model-signing does.

    Args:
        digest: of the object, which is the sha256 of its manifest.
        files: name -> sha256, as in the manifest.
    """
    return _payload(digest, {**files, MANIFEST: digest}, ())


def published_payload(digest: str, files: Mapping[str, str]) -> bytes:
    """List the files of a published release, without those that the hub writes.

    Args:
        digest: of the release.
        files: name -> sha256, as in its manifest.
    """
    signed = {name: sha256 for name, sha256 in files.items() if name not in HUB_WRITES}
    return _payload(digest, signed, (*HUB_WRITES, PROVENANCE))


def _payload(digest: str, files: Mapping[str, str], ignored: tuple[str, ...]) -> bytes:
    resources = [
        {"name": name, "algorithm": "sha256", "digest": sha256}
        for name, sha256 in sorted(files.items(), key=lambda item: PurePosixPath(item[0]))
    ]
    root = hashlib.sha256(b"".join(bytes.fromhex(one["digest"]) for one in resources))
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": digest[:16], "digest": {"sha256": root.hexdigest()}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "serialization": {**_SERIALIZATION, "ignore_paths": list(ignored)},
                "resources": resources,
            },
        }
    )


def signers_of(bundle: bytes, digest: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """Check the signature of an object and return the public keys that made it.

    Raises:
        TamperError: it is of other files, or does not fit.
    """
    return payload_signers(bundle, to_payload(digest, files))


def payload_signers(bundle: bytes, expected: bytes) -> tuple[str, ...]:
    """Check a signature and return the public keys that made it.

    Args:
        bundle: the signature.
        expected: what has to be signed.

    Raises:
        TamperError: it is of other files, or does not fit.
    """
    try:
        content: Any = json.loads(bundle)
        envelope = dsse.Envelope.model_validate(content["dsseEnvelope"])
        payload = dsse.payload_of(envelope)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise TamperError(f"is no signature: {error!r:.200}") from error
    if payload != expected:
        raise TamperError("is the signature of other files")
    for signature in envelope.signatures:
        if not dsse.is_valid(signature, payload):
            raise TamperError(f"the signature of key {signature.keyid} does not fit")
    # Other verifiers read the fields around the envelope; the key they name has to be the signer's.
    if len(envelope.signatures) != 1 or bundle != bundle_of(envelope):
        raise TamperError("is not a bundle as it was written")
    return tuple(signature.keyid for signature in envelope.signatures)


def _hint(keyid: str) -> str:
    """Name the key as model-signing does: by the sha256 of its PEM."""
    return hashlib.sha256(dsse.public_pem(dsse.public_key(keyid))).hexdigest()
