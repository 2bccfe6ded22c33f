"""Proof of which weights an endpoint of our own serves: it signs a challenge with its key.

A request whose `user` begins with `prove-weights:` is answered with an envelope over the challenge
and the digest of the model's folder, as statements name it. It proves that a holder of the key
vouches for the weights, not that this process cannot lie: whoever has the key can sign anything,
and who stands between client and server can pass a challenge on (use a loopback address or TLS).
"""

from collections.abc import Mapping

from pydantic import Field, ValidationError

from data_schemas.frozen_model import FrozenModel
from tasks.provenance.lineage.signatures.dsse import (
    Envelope,
    Signer,
    fingerprint,
    is_valid,
    payload_of,
    seal,
)
from tasks.provenance.lineage.signatures.keys import PublicKey
from tasks.store.files import canonical_json

PAYLOAD_TYPE = "application/vnd.eachprompt.served-model+json"
CHALLENGE = "prove-weights:"
"""How `user` of a request begins that asks for a proof."""


class VouchedWeights(FrozenModel):
    """What an endpoint vouches for."""

    challenge: str = Field(description="`user` of the request")
    weights: str = Field(description="sha256 of the model's folder")


def vouch(weights: str, challenge: str, signer: Signer) -> Envelope:
    """Sign which weights are served, in answer to a challenge."""
    payload = canonical_json(VouchedWeights(challenge=challenge, weights=weights))
    return seal(payload, [signer.sign(payload, PAYLOAD_TYPE)], PAYLOAD_TYPE)


def verify(proof: str, challenge: str, keys: Mapping[str, PublicKey]) -> tuple[str, str]:
    """Return the digest that a proof names, and the fingerprint of the key that vouches for it.

    Raises:
        ValueError: it is no proof, answers another challenge, or no trusted key made it.
    """
    if not proof:
        raise ValueError("it gives no proof of its weights; `eachprompt chat --serve` does")
    try:
        envelope = Envelope.model_validate_json(proof)
        payload = payload_of(envelope, PAYLOAD_TYPE)
        served = VouchedWeights.model_validate_json(payload)
    except ValidationError as error:
        raise ValueError(f"its proof cannot be read: {error.errors()[0]['msg']}") from error
    if served.challenge != challenge:
        raise ValueError("its proof answers another challenge")
    signers = [one.keyid for one in envelope.signatures if is_valid(one, payload, PAYLOAD_TYPE)]
    if not signers:
        raise ValueError("the signature of its proof is not valid")
    # A key with a last statement is revoked or expired: it vouches for nothing new.
    trusted = [name for name in signers if name in keys and keys[name].last is None]
    if not trusted:
        raise ValueError(
            f"its proof is signed by key {fingerprint(signers[0])[:16]}, which is not trusted "
            "(EACHPROMPT_TRUSTED_KEYS)"
        )
    return served.weights, fingerprint(trusted[0])
