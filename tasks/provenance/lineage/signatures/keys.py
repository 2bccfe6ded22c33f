"""The key that signs statements: a PEM file, or a key of AWS KMS; and the keys that are trusted.

A file must lie outside the store: whoever can write both can sign anything. P-256 because OpenSSF's
model-signing accepts no Ed25519. A key service keeps the private half to itself.
"""

import datetime
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from tasks.store.location import identity

logger = logging.getLogger(__name__)

KEY_VARIABLE = "EACHPROMPT_SIGNING_KEY"
"""Path of the private key, or awskms:///alias/NAME."""
_DEFAULT_KEY = Path(".config/eachprompt/signing_key.pem")
"""Below the home folder."""
TRUSTED_VARIABLE = "EACHPROMPT_TRUSTED_KEYS"
"""File of public keys that a run believes beside its own: earlier ones, or of other machines."""
_PUBLIC = ".pub"
_LIMIT = re.compile(
    r"# expires (?P<day>\S+)|# revoked(?: after (?P<last>[0-9a-f]{64}))?"
    r"|# store (?P<store>[0-9a-f]{32})|(?P<remark>##.*)"
)
_HOW = "openssl ecparam -name prime256v1 -genkey -noout -out key.pem"


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that somebody trusts, and how far."""

    fingerprint: str
    last: str | None = None
    """Digest of the last statement that it vouches for, with all that led to it; None = every
    statement, '' = none."""
    store: str = ""
    """Id of the only store in which it vouches for anything; '' = in every."""


TrustedKeys = Mapping[str, PublicKey]
"""By keyid."""


def find_signer(store: str = "") -> Signer | None:
    """Return the key to sign with; it is created if there is none.

    None in a pod without a configured key: one created there would be lost with the pod's disk.

    Args:
        store: uri of the store, which the key must not be part of.

    Raises:
        SettingsError: it cannot be read or created, is none of P-256, or lies in the store.
        EngineError: the key service does not answer.
    """
    place = os.environ.get(KEY_VARIABLE, "")
    in_pod = "FLYTE_INTERNAL_EXECUTION_ID" in os.environ
    if place.startswith(aws_kms.SCHEME):
        return aws_kms.find_key(place)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", place) or place == "sigstore":
        raise SettingsError(
            f"{KEY_VARIABLE} is {place!r}; supported are a key in a PEM file and one of AWS KMS, "
            f"no sigstore identity. Give the path of a file, or {aws_kms.FORM}."
        )
    if not place and in_pod:
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
            raise SettingsError(f"{KEY_VARIABLE} is {place!r}, which is not there. Mount the key.")
        _create(path)
    signer = signer_of(_read_private(path))
    if not place and not public_path().exists():  # killed between the two files
        write_bytes(public_path(), public_pem(signer.public_key))
    return signer


def public_half() -> str:
    """Say where the public half of the key is."""
    place = os.environ.get(KEY_VARIABLE, "")
    if place.startswith(aws_kms.SCHEME):
        return f"{place} (aws kms get-public-key)"
    return str(public_path())


def public_path() -> Path:
    """Return where the public half of a created key lies."""
    path = _path()
    return path.with_name(path.name + _PUBLIC)


def trusted_keys(store: str = "") -> dict[str, PublicKey]:
    """Return the keys whose signatures a run believes: its own, and those of a file.

    Empty where there is no key to sign with, so that nothing can be told from a forgery.

    Args:
        store: uri; '' = keys that vouch in other stores only are listed as well.

    Raises:
        SettingsError: a key or the file cannot be used, or no key is of this store.
        EngineError: the key service does not answer.
    """
    signer = find_signer(store)
    if signer is None:
        return {}
    file = os.environ.get(TRUSTED_VARIABLE, "")
    if file and store:
        require_outside(Path(file), store, TRUSTED_VARIABLE)
    others = read_public_keys(Path(file), TRUSTED_VARIABLE) if file else {}
    keys = {signer.public: PublicKey(fingerprint(signer.public))} | others
    if not store:
        return keys
    if not (results := keys_of(store, keys)):
        raise SettingsError(
            f"by {TRUSTED_VARIABLE} {file}, no key vouches in {store}, whose id is "
            f"{identity(store)}. If that is the store, name its id there."
        )
    return results


def keys_of(store: str, keys: TrustedKeys) -> dict[str, PublicKey]:
    """Leave out the keys that vouch in other stores only."""
    own = identity(store) if any(key.store for key in keys.values()) else ""
    return {name: key for name, key in keys.items() if key.store in ("", own)}


def require_outside(path: Path, store: str, option: str) -> None:
    """Refuse a file of trusted keys that whoever can write the store could replace.

    Raises:
        SettingsError: it lies in the store, or leads there.
    """
    place = Path(store).resolve()
    if any(one.is_relative_to(place) for one in (path.absolute(), path.expanduser().resolve())):
        raise SettingsError(
            f"{option} {path} lies in the store that it is to vouch for: whoever can write the one "
            "can replace the other. Name a copy that is yours."
        )


def read_public_keys(path: Path, option: str = "--key") -> dict[str, PublicKey]:
    """Read one or more public keys in PEM, each after the lines that limit it.

        # expires 2027-06-30
        # revoked
        # revoked after DIGEST OF A STATEMENT
        # store ID

    A signature has no date. So a key that was revoked, or has expired by today, vouches for the
    statement that is named, usually that of the last promotion before, and for all that led to it;
    without one for nothing. An id is that of the only store in which the key vouches. Certificates
    of time stamp services are left to `time_stamps`.

    Returns:
        By keyid.

    Raises:
        SettingsError: the file cannot be read, or holds anything else.
    """
    try:
        text = path.expanduser().read_text()
    except OSError as error:
        raise SettingsError(f"{option} {path} cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise SettingsError(f"{option} {path} is no text; give public keys in PEM") from error
    if "PRIVATE KEY" in text:
        raise SettingsError(
            f"{option} {path} is a private key; give the public one, {path}{_PUBLIC}"
        )
    text = _CERTIFICATE.sub("", text)
    results: dict[str, PublicKey] = {}
    start = 0
    for block in re.finditer(
        r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", text, re.DOTALL
    ):
        try:
            key = serialization.load_pem_public_key(block[0].encode())
        except ValueError as error:
            raise SettingsError(f"{option} {path} is no public key in PEM: {error}") from error
        if not is_p256(key):
            raise SettingsError(
                f"{option} {path} must hold public keys of P-256 in PEM, and nothing else"
            )
        last, home = _limit(text[start : block.start()], f"{option} {path}")
        results[keyid_of(key)] = PublicKey(fingerprint(keyid_of(key)), last, home)
        start = block.end()
    if not results or "-----BEGIN" in text[start:]:
        raise SettingsError(
            f"{option} {path} must hold public keys of P-256 in PEM, and nothing else"
        )
    return results


def _limit(lines: str, where: str) -> tuple[str | None, str]:
    """Read (last statement, store) of a key from the lines above it; unknown ones are refused."""
    last, ended, home = "", False, ""
    for line in filter(None, map(str.strip, lines.splitlines())):
        match = _LIMIT.fullmatch(line)
        if match is None:
            raise SettingsError(
                f"{where}: {line[:60]!r} says nothing about a key. Write '# expires 2027-06-30', "
                "'# revoked', '# revoked after DIGEST' or '# store ID' above it, or '## ...' for a "
                "remark."
            )
        if match["day"]:
            try:
                day = datetime.date.fromisoformat(match["day"])
            except ValueError as error:
                raise SettingsError(f"{where}: {line!r} is no date: {error}") from error
            ended |= datetime.datetime.now(datetime.UTC).date() >= day
        elif match["store"]:
            home = match["store"]
        elif not match["remark"]:
            ended, last = True, match["last"] or ""
    return last if ended else None, home


def _path() -> Path:
    place = os.environ.get(KEY_VARIABLE, "")
    return (Path(place).expanduser() if place else Path.home() / _DEFAULT_KEY).absolute()


def _create(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        # Several processes may begin at once: the first key stays, and all read it.
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
