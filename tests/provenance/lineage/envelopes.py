"""Forty envelopes, good and bad, made without the code that they test: DSSE v1 by its text.

https://github.com/secure-systems-lab/dsse/blob/v1.0.2/protocol.md
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

TYPE = "application/vnd.in-toto+json"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Order of P-256."""
Json = dict[str, Any]


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def pre_authentication(payload: bytes, kind: str, version: str = "DSSEv1") -> bytes:
    """PAE of the protocol: lengths are those of bytes."""
    named = kind.encode()
    return b" ".join(
        (version.encode(), str(len(named)).encode(), named, str(len(payload)).encode(), payload)
    )


def name_of(key: ec.EllipticCurvePublicKey) -> str:
    return key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint).hex()


def sign(key: ec.EllipticCurvePrivateKey, signed: bytes) -> bytes:
    return key.sign(signed, ec.ECDSA(hashes.SHA256()))


def independent(content: bytes, key: ec.EllipticCurvePublicKey) -> bool:
    """Verify as the protocol says, strictly: every signature fits, and one is of the key."""
    try:
        envelope = json.loads(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        signed = pre_authentication(payload, envelope["payloadType"])
        found = set()
        for one in envelope["signatures"]:
            curve = ec.SECP256R1()
            named = ec.EllipticCurvePublicKey.from_encoded_point(curve, bytes.fromhex(one["keyid"]))
            named.verify(
                base64.b64decode(one["sig"], validate=True), signed, ec.ECDSA(hashes.SHA256())
            )
            found.add(name_of(named))
    except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature):
        return False
    return envelope["payloadType"] == TYPE and name_of(key) in found


@dataclass(frozen=True)
class Material:
    """What envelopes are made of."""

    payload: bytes
    key: ec.EllipticCurvePrivateKey
    other: ec.EllipticCurvePrivateKey
    """Key of somebody nobody trusts."""

    def signed(self, key: ec.EllipticCurvePrivateKey, payload: bytes | None = None) -> Json:
        """A genuine signature."""
        raw = sign(key, pre_authentication(payload or self.payload, TYPE))
        return {"keyid": name_of(key.public_key()), "sig": encode(raw)}

    def envelope(self, **changes: object) -> bytes:
        """A genuine envelope, with changes."""
        genuine = {
            "payload": encode(self.payload),
            "payloadType": TYPE,
            "signatures": [self.signed(self.key)],
        }
        return json.dumps(genuine | changes, separators=(",", ":"), sort_keys=True).encode()

    def over(self, signed: bytes) -> bytes:
        """An envelope whose signature is over these bytes."""
        one = {"keyid": name_of(self.key.public_key()), "sig": encode(sign(self.key, signed))}
        return self.envelope(signatures=[one])

    def with_signature(self, change: Callable[[bytes], bytes]) -> bytes:
        """An envelope whose signature was changed."""
        one = self.signed(self.key)
        raw = change(base64.b64decode(one["sig"]))
        return self.envelope(signatures=[one | {"sig": encode(raw)}])

    def with_numbers(self, change: Callable[[int, int], tuple[int, int]]) -> bytes:
        """An envelope whose signature has other numbers."""
        return self.with_signature(
            lambda raw: encode_dss_signature(*change(*decode_dss_signature(raw)))
        )

    def with_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        """An envelope whose payload was changed after it was signed."""
        return self.envelope(payload=encode(change(self.payload)))


def flip(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place % len(content)] ^= 1
    return bytes(changed)


GOOD: dict[str, Callable[[Material], bytes]] = {
    "as it was written": lambda one: one.envelope(),
    "signed again, with another nonce": lambda one: one.envelope(),
    "signed by the trusted key and another": lambda one: one.envelope(
        signatures=[one.signed(one.key), one.signed(one.other)]
    ),
    "signed by another and the trusted key": lambda one: one.envelope(
        signatures=[one.signed(one.other), one.signed(one.key)]
    ),
    "the other root of the same signature": lambda one: one.with_numbers(
        lambda r, s: (r, ORDER - s)
    ),
    **{
        f"a signature with a nonce of its own, {number}": lambda one: one.envelope()
        for number in range(5)
    },
}
BAD: dict[str, Callable[[Material], bytes]] = {
    **{
        f"a flipped bit of the payload at {place}": lambda one, place=place: one.with_payload(
            lambda payload: flip(payload, place)
        )
        for place in (0, 7, -1)
    },
    "a longer payload": lambda one: one.with_payload(lambda payload: payload + b" "),
    "a shorter payload": lambda one: one.with_payload(lambda payload: payload[:-1]),
    "no payload": lambda one: one.envelope(payload=""),
    "a payload that is no base64": lambda one: one.envelope(payload="*" * 40),
    "another type": lambda one: one.envelope(payloadType="application/json"),
    "a type in capitals": lambda one: one.envelope(payloadType=TYPE.upper()),
    "an empty type": lambda one: one.envelope(payloadType=""),
    "a type that is no text": lambda one: one.envelope(payloadType=7),
    **{
        f"a flipped bit of the signature at {place}": lambda one, place=place: one.with_signature(
            lambda raw: flip(raw, place)
        )
        for place in (0, 12, -1)
    },
    "a shorter signature": lambda one: one.with_signature(lambda raw: raw[:-1]),
    "a longer signature": lambda one: one.with_signature(lambda raw: raw + b"\0"),
    "an empty signature": lambda one: one.with_signature(lambda _: b""),
    "a signature of zeros": lambda one: one.with_numbers(lambda _, __: (0, 0)),
    "a signature of ones": lambda one: one.with_numbers(lambda _, __: (1, 1)),
    "a signature with its numbers exchanged": lambda one: one.with_numbers(lambda r, s: (s, r)),
    "the signature of another payload": lambda one: one.envelope(
        signatures=[one.signed(one.key, b"{}")]
    ),
    "the payload signed by itself": lambda one: one.over(one.payload),
    "another version of the protocol": lambda one: one.over(
        pre_authentication(one.payload, TYPE, "DSSEv2")
    ),
    "another type signed": lambda one: one.over(pre_authentication(one.payload, "text/plain")),
    "signed by another key": lambda one: one.envelope(signatures=[one.signed(one.other)]),
    "signed by another key under the trusted name": lambda one: one.envelope(
        signatures=[one.signed(one.other) | {"keyid": name_of(one.key.public_key())}]
    ),
    "signed by nobody": lambda one: one.envelope(signatures=[]),
    "no signatures": lambda one: one.envelope(signatures=None),
    "no envelope": lambda one: one.payload,
    "no JSON": lambda _: b"\x30\x82",
}
STRICTER: dict[str, Callable[[Material], bytes]] = {
    "a field more": lambda one: one.envelope(note="believe me"),
    "white space": lambda one: one.envelope().replace(b",", b", "),
    "a second signature that does not fit": lambda one: one.envelope(
        signatures=[one.signed(one.key), one.signed(one.other, b"{}")]
    ),
}
"""What others read as if it were as it was written; here it has to be."""
