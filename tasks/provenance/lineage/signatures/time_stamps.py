"""Time stamps of RFC 3161: another party's word that a promotion existed at a time.

    <store>/timestamps/<digest of a statement>.tsr      a TimeStampResp, as `openssl ts` reads it

`EACHPROMPT_TIME_STAMPS` names the service; without it nothing is stamped. What is sent is the
digest of the statement. An auditor checks the stamp offline, with the service's certificate.

Source: RFC 3161, sections 2.4.1 and 2.4.2; RFC 5652, section 5.
Differs: the certificate that signed is the one that the auditor gave. Its issuers are not followed,
and ESSCertID, which names the certificate in a token, is not read.
"""

import hmac
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.oid import ObjectIdentifier as Oid

from tasks.errors import DataError, EngineError, SettingsError, TamperError
from tasks.store.interface import store_at

SERVICE_VARIABLE = "EACHPROMPT_TIME_STAMPS"
_LIMIT_S = 30.0
_LIMIT_BYTES = 2**18
_GRANTED = (0, 1)
"""PKIStatus granted, and granted with modifications."""
_SIGNED_DATA = Oid("1.2.840.113549.1.7.2")
_STAMP_INFO = Oid("1.2.840.113549.1.9.16.1.4")
_CONTENT_TYPE = Oid("1.2.840.113549.1.9.3")
_MESSAGE_DIGEST = Oid("1.2.840.113549.1.9.4")
_SHA256 = Oid("2.16.840.1.101.3.4.2.1")
_HASHES: dict[Oid, hashes.HashAlgorithm] = {
    _SHA256: hashes.SHA256(),
    Oid("2.16.840.1.101.3.4.2.2"): hashes.SHA384(),
    Oid("2.16.840.1.101.3.4.2.3"): hashes.SHA512(),
}
_SIGNED_WITH: dict[Oid, hashes.HashAlgorithm | None] = {
    Oid("1.2.840.113549.1.1.1"): None,  # RSA, with the hash of the digest
    Oid("1.2.840.113549.1.1.11"): hashes.SHA256(),
    Oid("1.2.840.113549.1.1.12"): hashes.SHA384(),
    Oid("1.2.840.113549.1.1.13"): hashes.SHA512(),
    Oid("1.2.840.10045.4.3.2"): hashes.SHA256(),
    Oid("1.2.840.10045.4.3.3"): hashes.SHA384(),
    Oid("1.2.840.10045.4.3.4"): hashes.SHA512(),
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """When something existed at the latest, and who says so."""

    time: datetime
    authority: str


def stamp_uri(store: str, digest: str) -> str:
    """Return where the stamp of a statement lies."""
    return f"{store}/timestamps/{digest}.tsr"


def stamp_statement(store: str, digest: str) -> None:
    """Have a statement stamped, if a service is configured; the first stamp stays.

    Raises:
        SettingsError: the service's address is none.
        EngineError: the service does not answer, or not to what it was asked.
    """
    service = os.environ.get(SERVICE_VARIABLE, "")
    if not service:
        return
    place = store_at(stamp_uri(store, digest))
    with suppress(DataError):
        place.read_bytes()
        return
    # 63 bits: DER knows signed integers only.
    nonce = secrets.randbits(63)
    request = _Request(
        version=1,
        imprint=_Imprint(
            algorithm=_Algorithm(name=_SHA256, parameters=asn1.Null()),
            digest=bytes.fromhex(digest),
        ),
        nonce=nonce,
    )
    answer = _ask(service, asn1.encode_der(request))
    try:
        info = _info(_signed(answer))
    except ValueError as error:
        raise EngineError(f"{SERVICE_VARIABLE} {service}: no time stamp: {error}") from error
    if not _is_of(info, digest) or info.nonce != nonce:
        raise EngineError(f"{SERVICE_VARIABLE} {service} stamped something else than it was asked")
    place.create_bytes(answer)


def read_stamp(content: bytes, digest: str, authorities: Sequence[x509.Certificate]) -> Stamp:
    """Check a stamp of a statement.

    Args:
        content: of its file.
        digest: of the statement.
        authorities: certificates of which one has to have signed it.

    Raises:
        TamperError: it is none, of something else, or none of them signed it while it was valid.
    """
    try:
        signed = _signed(content)
        info = _info(signed)
        stamped = info.time.as_datetime()
        if not _is_of(info, digest):
            raise TamperError("is the time stamp of something else")
        for one in authorities:
            if _has_signed(one, signed):
                if not one.not_valid_before_utc <= stamped <= one.not_valid_after_utc:
                    raise TamperError(f"was made {stamped}, when its certificate was not valid")
                return Stamp(stamped, one.subject.rfc4514_string())
    except ValueError as error:
        raise TamperError(f"is no time stamp: {error}") from error
    raise TamperError("is a time stamp that no certificate of --key has signed")


def read_authorities(path: Path, option: str = "--key") -> tuple[x509.Certificate, ...]:
    """Read the certificates of time stamp services in a file of public keys; there may be none.

    Raises:
        SettingsError: it cannot be read, or one is of no time stamp service.
    """
    try:
        content = path.expanduser().read_bytes()
        result = x509.load_pem_x509_certificates(content) if b"BEGIN CERTIFICATE" in content else []
    except OSError as error:
        raise SettingsError(f"{option} {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{option} {path} has no certificate in PEM: {error}") from error
    for one in result:
        with suppress(x509.ExtensionNotFound):
            usage = one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
            if ExtendedKeyUsageOID.TIME_STAMPING in usage:
                continue
        raise SettingsError(
            f"{option} {path}: {one.subject.rfc4514_string()} is no certificate of a time stamp "
            "service (extended key usage timeStamping). Give the one that signs the stamps."
        )
    return tuple(result)


@asn1.sequence
class _Algorithm:
    name: Oid
    parameters: asn1.Null | None


@asn1.sequence
class _Imprint:
    algorithm: _Algorithm
    digest: bytes


@asn1.sequence
class _Request:
    """A TimeStampReq; the certificate is not asked for."""

    version: int
    imprint: _Imprint
    nonce: int


@asn1.sequence
class _Accuracy:
    seconds: int | None
    millis: Annotated[int | None, asn1.Implicit(0)]
    micros: Annotated[int | None, asn1.Implicit(1)]


@asn1.sequence
class _Name:
    name: asn1.TLV


@asn1.sequence
class _Info:
    """A TSTInfo."""

    version: int
    policy: Oid
    imprint: _Imprint
    serial: int
    time: asn1.GeneralizedTime
    accuracy: _Accuracy | None
    ordering: Annotated[bool, asn1.Default(value=False)]
    nonce: int | None
    authority: Annotated[_Name | None, asn1.Implicit(0)]
    extensions: Annotated[list[asn1.TLV] | None, asn1.Implicit(1)]


@asn1.sequence
class _Attribute:
    name: Oid
    values: asn1.SetOf[asn1.TLV]


@asn1.sequence
class _Signer:
    """A SignerInfo with signed attributes, as a time stamp has it."""

    version: int
    certificate: asn1.TLV
    digest: _Algorithm
    attributes: Annotated[list[_Attribute], asn1.Implicit(0)]
    signature: _Algorithm
    value: bytes
    unsigned: Annotated[list[asn1.TLV] | None, asn1.Implicit(1)]


@asn1.sequence
class _RawSigner:
    """The same with the attributes as they are: their bytes are signed."""

    version: int
    certificate: asn1.TLV
    digest: _Algorithm
    attributes: asn1.TLV
    signature: _Algorithm
    value: bytes
    unsigned: Annotated[list[asn1.TLV] | None, asn1.Implicit(1)]


@asn1.sequence
class _Content:
    type: Oid
    info: Annotated[bytes, asn1.Explicit(0)]


@asn1.sequence
class _SignedData:
    """A SignedData."""

    version: int
    digests: asn1.TLV
    content: _Content
    # SET OF; not as one, because services do not sort them.
    certificates: Annotated[list[asn1.TLV] | None, asn1.Implicit(0)]
    revoked: Annotated[list[asn1.TLV] | None, asn1.Implicit(1)]
    signers: asn1.SetOf[asn1.TLV]


@asn1.sequence
class _Token:
    type: Oid
    signed: Annotated[_SignedData, asn1.Explicit(0)]


@asn1.sequence
class _Status:
    status: int
    text: list[asn1.TLV] | None
    failure: asn1.BitString | None


@asn1.sequence
class _Response:
    """A TimeStampResp."""

    status: _Status
    token: _Token | None


def _signed(content: bytes) -> _SignedData:
    answer = asn1.decode_der(_Response, content)
    if answer.status.status not in _GRANTED or answer.token is None:
        raise ValueError(f"the service refused it with status {answer.status.status}")
    if answer.token.type != _SIGNED_DATA or answer.token.signed.content.type != _STAMP_INFO:
        raise ValueError("it holds something else")
    return answer.token.signed


def _info(signed: _SignedData) -> _Info:
    return asn1.decode_der(_Info, signed.content.info)


def _is_of(info: _Info, digest: str) -> bool:
    of = info.imprint
    is_equal = hmac.compare_digest(of.digest, bytes.fromhex(digest))
    return of.algorithm.name == _SHA256 and is_equal


def _has_signed(certificate: x509.Certificate, signed: _SignedData) -> bool:
    """Check signature, digest and type of what a certificate's key signed."""
    # One signature, the service's own (RFC 3161, 2.4.2).
    (one,) = signed.signers.as_list()
    signer, raw = one.parse(_Signer), one.parse(_RawSigner)
    values = {item.name: item.values.as_list() for item in signer.attributes}
    digest = _HASHES.get(signer.digest.name)
    if len(values) != len(signer.attributes) or digest is None:
        raise ValueError("its signed attributes or its digest are of no known kind")
    if [tlv.parse(Oid) for tlv in values.get(_CONTENT_TYPE, ())] != [_STAMP_INFO]:
        raise ValueError("its signature is of something else")
    hashed = hashes.Hash(digest)
    hashed.update(signed.content.info)
    if [tlv.parse(bytes) for tlv in values.get(_MESSAGE_DIGEST, ())] != [hashed.finalize()]:
        raise ValueError("its signature is of other content")
    # Tagged [0] where they lie, signed as the SET that they are.
    attributes = b"\x31" + asn1.encode_der(raw.attributes)[1:]
    if signer.signature.name not in _SIGNED_WITH:
        raise ValueError(f"signatures of kind {signer.signature.name.dotted_string} are not read")
    algorithm = _SIGNED_WITH[signer.signature.name] or digest
    key = certificate.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signer.value, attributes, padding.PKCS1v15(), algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signer.value, attributes, ec.ECDSA(algorithm))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def _ask(service: str, request: bytes) -> bytes:
    """Send a request; a service that is slow, or says too much, does not answer."""
    if not service.startswith(("http://", "https://")):
        raise SettingsError(
            f"{SERVICE_VARIABLE} is {service!r}; give the http:// or https:// address of a service "
            "of RFC 3161"
        )
    query = urllib.request.Request(
        service, request, {"Content-Type": "application/timestamp-query"}
    )
    ends, answer = time.monotonic() + _LIMIT_S, b""
    try:
        with urllib.request.urlopen(query, timeout=_LIMIT_S) as response:
            while part := cast("bytes", response.read1(2**16)):
                answer += part
                if len(answer) > _LIMIT_BYTES or time.monotonic() > ends:
                    raise EngineError(f"{SERVICE_VARIABLE} {service} does not end its answer")
    except (OSError, ValueError) as error:
        raise EngineError(f"{SERVICE_VARIABLE} {service} does not answer: {error}") from error
    return answer
