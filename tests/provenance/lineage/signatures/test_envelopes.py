"""An independent verifier of DSSE agrees with ours on forty envelopes."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.statements import Output, Statement
from tasks.errors import DataError
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.statements import open_statement
from tasks.store.files import sha256_bytes
from tests.provenance.lineage import envelopes
from tests.records import filled

pytestmark = pytest.mark.attack
STATEMENT = filled(
    Statement,
    stage="rl/one",
    settings='{"steps":8}',
    lock="",
    outputs=(Output(role="model", uri="objects/x", digest="a" * 64),),
    facts={"rows": 3, "language": "日本語"},
)


@pytest.fixture(scope="module")
def material() -> envelopes.Material:
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    return envelopes.Material(to_payload(STATEMENT), *keys)


def is_ours(material: envelopes.Material, content: bytes) -> bool:
    """Whether what lies under the name of the statement is one that the key vouches for."""
    try:
        opened = open_statement(content, sha256_bytes(material.payload), "/store")
    except DataError:
        return False
    return envelopes.name_of(material.key.public_key()) in opened.signers


def test_there_are_forty():
    assert 40 == len(envelopes.GOOD) + len(envelopes.BAD)


@pytest.mark.parametrize("case", [*envelopes.GOOD, *envelopes.BAD])
def test_a_verifier_by_the_text_of_the_protocol_agrees_with_ours(material, case):
    content = (envelopes.GOOD | envelopes.BAD)[case](material)
    expected = case in envelopes.GOOD

    assert expected == envelopes.independent(content, material.key.public_key())
    assert expected == is_ours(material, content)


@pytest.mark.parametrize("case", envelopes.STRICTER)
def test_what_others_read_leniently_is_refused_here(material, case):
    assert not is_ours(material, envelopes.STRICTER[case](material))


@pytest.mark.parametrize("kind", ["application/vnd.eachprompt.state; name=größe", envelopes.TYPE])
def test_lengths_of_what_is_signed_are_those_of_bytes(material, kind):
    signature = dsse.signer_of(material.key).sign(b"{}", kind)
    raw = envelopes.base64.b64decode(signature.sig)

    material.key.public_key().verify(
        raw,
        envelopes.pre_authentication(b"{}", kind),
        ec.ECDSA(envelopes.hashes.SHA256()),
    )
