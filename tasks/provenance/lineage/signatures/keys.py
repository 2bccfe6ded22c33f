"""The key that signs statements: a PEM file, or a key of AWS KMS.

A file must lie outside the store: whoever can write both can sign anything. P-256 because OpenSSF's
model-signing accepts no Ed25519. A key service keeps the private half to itself.
"""

import logging
import os
import re
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tasks.errors import SettingsError
from tasks.provenance.lineage.signatures import aws_kms
from tasks.provenance.lineage.signatures.dsse import (
    Signer,
    fingerprint,
    is_p256,
    keyid_of,
    public_pem,
    signer_of,
)
from tasks.store.files import create_bytes, write_bytes

logger = logging.getLogger(__name__)

KEY_VARIABLE = "EACHPROMPT_SIGNING_KEY"
"""Path of the private key, or awskms:///alias/NAME."""
_DEFAULT_KEY = Path(".config/eachprompt/signing_key.pem")
"""Below the home folder."""
_PUBLIC = ".pub"
_HOW = "openssl ecparam -name prime256v1 -genkey -noout -out key.pem"


def find_signer(store: str = "") -> Signer | None:
    """Return the key to sign with; it is created if there is none.

    None in a pod without a configured key: one created there would be lost with the pod's disk.

    Args:
        store: uri of the store, which the key must not be part of.

    Raises:
        SettingsError: it cannot be read or created, is none of P-256, or lies in the store.
        EngineError: the key service does not answer.
    """
    named = os.environ.get(KEY_VARIABLE, "")
    in_pod = "FLYTE_INTERNAL_EXECUTION_ID" in os.environ
    if named.startswith(aws_kms.SCHEME):
        return aws_kms.find_key(named)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", named) or named == "sigstore":
        raise SettingsError(
            f"{KEY_VARIABLE} is {named!r}; supported are a key in a PEM file and one of AWS KMS, "
            f"no sigstore identity. Give the path of a file, or {aws_kms.FORM}."
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
    return signer_of(_read_private(path))


def public_half() -> str:
    """Say where the public half of the key is."""
    named = os.environ.get(KEY_VARIABLE, "")
    if named.startswith(aws_kms.SCHEME):
        return f"{named} (aws kms get-public-key)"
    return str(public_path())


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
    points = [keyid_of(key) for key in keys if is_p256(key)]
    if not points or len(points) < len(keys):
        raise SettingsError(f"--key {path} must hold public keys of P-256 in PEM, and nothing else")
    return {point: fingerprint(point) for point in points}


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
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not is_p256(key.public_key()):
        raise SettingsError(f"{KEY_VARIABLE}: {path} is no key of P-256. Make one: {_HOW}")
    return key
