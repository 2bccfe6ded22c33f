"""DSSE envelopes (secure-systems-lab/dsse, v1): bytes, and who vouches for them.

Keys are of P-256, because OpenSSF's model-signing accepts no Ed25519. The `keyid` of a signature is
the public key itself, as a compressed point in hex. So a changed signature is noticed without a key
at hand; whose key it is, only the auditor's own copy tells.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from pydantic import Field

from data_schemas.frozen_model import FrozenModel

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Signature(FrozenModel):
    """One signature in an envelope."""

    keyid: str = Field(description="public key, a compressed point in hex")
    sig: str = Field(description="base64 of the DER encoding")


class Envelope(FrozenModel):
    """A DSSE envelope."""

    payload: str = Field(description="base64")
    payloadType: str  # the name that DSSE prescribes
    signatures: tuple[Signature, ...] = Field(description="empty: nobody vouches for it")


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that signs, wherever its private half is."""

    public_key: ec.EllipticCurvePublicKey
    sign_digest: Callable[[bytes], bytes]
    """sha256 -> signature in DER."""

    @property
    def public(self) -> str:
        """The public key, as a keyid."""
        return keyid_of(self.public_key)

    def sign(self, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> Signature:
        """Sign a payload; by default a statement of in-toto."""
        raw = self.sign_digest(hashlib.sha256(_pre_authentication(payload, payload_type)).digest())
        return Signature(keyid=self.public, sig=base64.b64encode(raw).decode())


def signer_of(key: ec.EllipticCurvePrivateKey) -> Signer:
    """Sign with a key at hand; nonces follow RFC 6979, so the same bytes have one signature."""
    algorithm = ec.ECDSA(Prehashed(hashes.SHA256()), deterministic_signing=True)
    return Signer(key.public_key(), lambda digest: key.sign(digest, algorithm))


def fingerprint(keyid: str) -> str:
    """Name a public key as `openssl pkey -pubin -outform DER | sha256sum` does."""
    der = public_key(keyid).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def seal(
    payload: bytes, signatures: Sequence[Signature], payload_type: str = PAYLOAD_TYPE
) -> Envelope:
    """Put a payload and its signatures into an envelope."""
    return Envelope(
        payload=base64.b64encode(payload).decode(),
        payloadType=payload_type,
        signatures=tuple(signatures),
    )


def payload_of(envelope: Envelope, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Decode the payload.

    Raises:
        ValueError: it is of another type, which other verifiers sign and read as something else, or
            not base64 in its only spelling.
    """
    if envelope.payloadType != payload_type:
        raise ValueError(f"the payload is of type {envelope.payloadType}, not {payload_type}")
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except ValueError as error:
        raise ValueError(f"the payload is not base64: {error}") from error
    if base64.b64encode(payload).decode() != envelope.payload:
        raise ValueError("the payload is not base64 as it is written")
    return payload


def is_valid(signature: Signature, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bool:
    """True if the key that a signature names made it for this payload, in the only spelling."""
    try:
        raw = base64.b64decode(signature.sig, validate=True)
        if base64.b64encode(raw).decode() != signature.sig:
            return False
        public_key(signature.keyid).verify(
            raw,
            _pre_authentication(payload, payload_type),
            ec.ECDSA(hashes.SHA256()),
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def _pre_authentication(payload: bytes, payload_type: str) -> bytes:
    """Encode what is signed: "DSSEv1 <length> <type> <length> <payload>", with lengths in bytes."""
    head = f"DSSEv1 {len(payload_type.encode())} {payload_type} {len(payload)} "
    return head.encode() + payload


def is_p256(key: object) -> TypeGuard[ec.EllipticCurvePublicKey]:
    """True for a public key of the one curve that is used."""
    return isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)


def public_pem(key: ec.EllipticCurvePublicKey) -> bytes:
    """Write a public key in PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def keyid_of(key: ec.EllipticCurvePublicKey) -> str:
    """Write a public key as a compressed point in hex."""
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    ).hex()


def public_key(keyid: str) -> ec.EllipticCurvePublicKey:
    """Read a keyid.

    Raises:
        ValueError: it is no compressed point of P-256.
    """
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes.fromhex(keyid))
