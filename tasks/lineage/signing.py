"""Signatures: who vouches for bytes. Keys, and DSSE envelopes (secure-systems-lab/dsse, v1).

The key is a P-256 key in a PEM file, which must lie outside the store: whoever can write both can
sign anything. P-256 because OpenSSF's model-signing accepts no Ed25519; nonces follow RFC 6979,
so that the same bytes signed again are the same envelope.

The `keyid` of a signature is the public key itself, as a compressed point in hex. So a changed
signature is noticed without a key at hand; whose key it is, only the auditor's own copy tells.
"""

import base64
import hashlib
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import BaseModel, ConfigDict, Field

from tasks.errors import SettingsError
from tasks.store.files import create_bytes, write_bytes

logger = logging.getLogger(__name__)

KEY_VARIABLE = "EACHPROMPT_SIGNING_KEY"
"""Path of the private key."""
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_DEFAULT_KEY = Path(".config/eachprompt/signing_key.pem")
"""Below the home folder."""
_PUBLIC = ".pub"
_ALGORITHM = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
_HOW = "openssl ecparam -name prime256v1 -genkey -noout -out key.pem"


class Signature(BaseModel):
    """One signature in an envelope."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keyid: str = Field(description="public key, a compressed point in hex")
    sig: str = Field(description="base64 of the DER encoding")


class Envelope(BaseModel):
    """A DSSE envelope."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    payload: str = Field(description="base64")
    payloadType: str  # the name that DSSE prescribes
    signatures: tuple[Signature, ...] = Field(description="empty: nobody vouches for it")


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key."""

    key: ec.EllipticCurvePrivateKey

    @property
    def public(self) -> str:
        """The public key, as a keyid."""
        return _point(self.key.public_key())

    def sign(self, payload: bytes) -> Signature:
        """Sign a payload of an in-toto type."""
        raw = self.key.sign(_pre_authentication(payload), _ALGORITHM)
        return Signature(keyid=self.public, sig=base64.b64encode(raw).decode())


def find_signer(store: str = "") -> Signer | None:
    """Return the key to sign with; it is created if there is none.

    None in a pod without a configured key: one created there would be lost with the pod's disk.

    Args:
        store: uri of the store, which the key must not be part of.

    Raises:
        SettingsError: it cannot be read or created, is none of P-256, or lies in the store.
    """
    named = os.environ.get(KEY_VARIABLE, "")
    in_pod = "FLYTE_INTERNAL_EXECUTION_ID" in os.environ
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", named) or named == "sigstore":
        raise SettingsError(
            f"{KEY_VARIABLE} is {named!r}; only a key in a PEM file is supported, no key "
            "management service and no sigstore identity. Give the path of a file."
        )
    if not named and in_pod:
        logger.warning(
            "the statement is not signed: mount a key and name its file in %s", KEY_VARIABLE
        )
        return None
    path = _path()
    if store and path.resolve().is_relative_to(Path(store).resolve()):
        raise SettingsError(
            f"the signing key {path} lies in the store it is to vouch for. Move it elsewhere and "
            f"name it in {KEY_VARIABLE}."
        )
    if not path.exists():
        if in_pod:
            raise SettingsError(f"{KEY_VARIABLE} is {named!r}, which is not there. Mount the key.")
        _create(path)
    return Signer(_read_private(path))


def public_path() -> Path:
    """Return where the public half of a created key lies."""
    path = _path()
    return path.with_name(path.name + _PUBLIC)


def read_public_keys(path: Path) -> dict[str, str]:
    """Read one or more public keys in PEM.

    Returns:
        keyid -> fingerprint.

    Raises:
        SettingsError: the file cannot be read, or holds anything else.
    """
    try:
        text = path.expanduser().read_bytes()
    except OSError as error:
        raise SettingsError(f"--key {path} cannot be read: {error.strerror}") from error
    if b"PRIVATE KEY" in text:
        raise SettingsError(f"--key {path} is a private key; give the public one, {path}{_PUBLIC}")
    blocks = re.findall(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", text, re.DOTALL)
    try:
        keys = [serialization.load_pem_public_key(block) for block in blocks]
    except ValueError as error:
        raise SettingsError(f"--key {path} is no public key in PEM: {error}") from error
    points = [_point(key) for key in keys if _is_p256(key)]
    if not points or len(points) < len(keys):
        raise SettingsError(f"--key {path} must hold public keys of P-256 in PEM, and nothing else")
    return {point: fingerprint(point) for point in points}


def fingerprint(keyid: str) -> str:
    """Name a public key as `openssl pkey -pubin -outform DER | sha256sum` does."""
    der = _public(keyid).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def seal(payload: bytes, signatures: Sequence[Signature]) -> Envelope:
    """Put a payload and its signatures into an envelope."""
    return Envelope(
        payload=base64.b64encode(payload).decode(),
        payloadType=PAYLOAD_TYPE,
        signatures=tuple(signatures),
    )


def payload_of(envelope: Envelope) -> bytes:
    """Decode the payload.

    Raises:
        ValueError: it is not base64, in its only spelling.
    """
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except ValueError as error:
        raise ValueError(f"the payload is not base64: {error}") from error
    if base64.b64encode(payload).decode() != envelope.payload:
        raise ValueError("the payload is not base64 as it is written")
    return payload


def is_valid(signature: Signature, payload: bytes) -> bool:
    """True if the key that a signature names made it for this payload."""
    try:
        _public(signature.keyid).verify(
            base64.b64decode(signature.sig, validate=True),
            _pre_authentication(payload),
            ec.ECDSA(hashes.SHA256()),
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def _pre_authentication(payload: bytes) -> bytes:
    """Encode what is signed: "DSSEv1 <length> <type> <length> <payload>"."""
    head = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(payload)} "
    return head.encode() + payload


def _path() -> Path:
    named = os.environ.get(KEY_VARIABLE, "")
    return (Path(named).expanduser() if named else Path.home() / _DEFAULT_KEY).absolute()


def _create(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        if create_bytes(path, private, mode=0o600):
            write_bytes(public_path(), public_pem(key.public_key()))
            logger.info("created the signing key %s", path)
    except OSError as error:
        raise SettingsError(
            f"the signing key {path} cannot be created: {error}. Name another place in "
            f"{KEY_VARIABLE}."
        ) from error


def public_pem(key: ec.EllipticCurvePublicKey) -> bytes:
    """Write a public key in PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _read_private(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise SettingsError(f"{KEY_VARIABLE}: {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:  # TypeError: it has a password
        raise SettingsError(
            f"{KEY_VARIABLE}: {path} is no private key without a password: {error}. "
            f"Make one: {_HOW}"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _is_p256(key.public_key()):
        raise SettingsError(f"{KEY_VARIABLE}: {path} is no key of P-256. Make one: {_HOW}")
    return key


def _is_p256(key: object) -> bool:
    return isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)


def _point(key: object) -> str:
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    ).hex()


def _public(keyid: str) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes.fromhex(keyid))
