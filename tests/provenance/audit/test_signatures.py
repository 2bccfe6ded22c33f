"""Who vouches for a chain: named by key, missing where anybody else wrote a part of it."""

import base64
import json
import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.text import chain_text
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.signatures.dsse import Signer, fingerprint, seal, signer_of
from tasks.provenance.lineage.signatures.keys import PublicKey, TrustedKeys, find_signer
from tasks.provenance.lineage.signatures.model import bundle_of, sign_model
from tasks.provenance.lineage.statements import load_statement, statement_uri
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tests.slices import sliced

pytestmark = [pytest.mark.attack, pytest.mark.parametrize("original", ["sqlite"], indirect=True)]
RELEASED = "models:/tiny@released"


@pytest.fixture
def owner() -> TrustedKeys:
    """The public key of whoever made the chain."""
    signer = find_signer()
    assert signer
    return {signer.public: PublicKey(fingerprint(signer.public))}


@pytest.fixture
def attacker() -> Signer:
    return signer_of(ec.generate_private_key(ec.SECP256R1()))


def sign(chain, name: str, *signers: Signer) -> None:
    """Write a statement's envelope again with other signatures."""
    digest = chain.refs[name].statement
    payload = to_payload(load_statement(str(chain.store), digest))
    envelope = seal(payload, [signer.sign(payload) for signer in signers])
    chain.statement(name).write_bytes(canonical_json(envelope))


def test_with_the_owners_key_the_whole_chain_is_vouched_for(chain, owner):
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)
    key = next(iter(owner.values())).fingerprint

    assert report.proved
    assert [(key, 9, True)] == [(s.fingerprint, s.statements, s.known) for s in report.signers]
    assert f"Statements: 9 signed by key {key[:16]} of --key." in chain_text(report)


def test_without_a_key_the_audit_says_that_nobody_vouches(chain):
    report = audit(RELEASED, chain.tracking_uri, str(chain.store))

    assert report.proved
    assert "Nobody vouches for that: no --key was given." in chain_text(report)


def test_a_chain_of_another_key_is_named_statement_by_statement(chain, owner, attacker):
    mine = next(iter(owner.values())).fingerprint
    report = audit(
        RELEASED,
        chain.tracking_uri,
        str(chain.store),
        {attacker.public: PublicKey("of the attacker")},
    )

    mark, *statements = [one.problem for one in report.findings]
    assert f"is signed by {mine[:16]}, and by no key that is trusted" == mark
    # nine statements, and the signature of the weights
    assert [f"signed by key {mine[:16]}, not by --key"] * 10 == statements


@pytest.mark.parametrize("by", ["nobody", "another key"])
def test_one_statement_without_the_owners_signature_is_named(chain, owner, attacker, by):
    sign(chain, "merged", *([] if by == "nobody" else [attacker]))
    who = "nobody" if by == "nobody" else f"key {fingerprint(attacker.public)[:16]}, not by --key"
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)

    assert [(str(chain.statement("merged")), f"signed by {who}")] == [
        (one.object, one.problem) for one in report.findings
    ]
    assert audit(RELEASED, chain.tracking_uri, str(chain.store)).proved


def rewrite(chain, signers: list[Signer]) -> tuple[str, dict[str, str]]:
    """Change a fact of the merge and relink everything after it, as an attacker would."""
    store = str(chain.store)
    renamed: dict[str, str] = {}
    for name in ("merged", "policy", "report", "release"):
        statement = load_statement(store, chain.refs[name].statement)
        changed = statement.model_copy(
            update={
                "facts": statement.facts | {"rows": 8},
                "inputs": tuple(
                    one.model_copy(update={"statement": renamed.get(one.statement, one.statement)})
                    for one in statement.inputs
                ),
            }
        )
        payload = to_payload(changed)
        digest = sha256_bytes(payload)
        envelope = seal(payload, [signer.sign(payload) for signer in signers])
        store_at(statement_uri(store, digest)).write_bytes(canonical_json(envelope))
        chain.statement(name).unlink()
        renamed[chain.refs[name].statement] = digest
    return digest, renamed


@pytest.mark.parametrize("by", ["nobody", "another key"])
def test_a_consistent_rewrite_of_the_chain_is_found_by_the_key_alone(chain, owner, attacker, by):
    root, renamed = rewrite(chain, [] if by == "nobody" else [attacker])
    without = Evidence(str(chain.store))
    without.visit(root)
    signed = Evidence(str(chain.store), owner)
    signed.visit(root)

    assert {} == without.findings
    assert set(renamed.values()) == signed.findings.keys()
    assert {9} == {len(without.statements), len(signed.statements)}


def test_the_signature_of_the_weights_is_by_the_owner_too(chain, owner, attacker):
    path = chain.store / "signatures" / f"{chain.refs['release'].digest[:16]}.sig"
    bundle = json.loads(path.read_bytes())
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    path.write_bytes(bundle_of(seal(payload, [attacker.sign(payload)])))
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)

    assert [(str(path), f"signed by key {fingerprint(attacker.public)[:16]}, not by --key")] == [
        (one.object, one.problem) for one in report.findings
    ]


@pytest.mark.parametrize(
    ("damage", "problem"),
    sliced(
        [
            (lambda path, _: path.unlink(), "gone"),
            (lambda path, _: path.write_text("{}"), "is no signature"),
            (
                lambda path, old: path.write_bytes(old.replace(b'"sig":"M', b'"sig":"N')),
                "does not fit",
            ),
            (
                lambda path, old: path.write_bytes(old.replace(b'"payload":"e', b'"payload":"f')),
                "is the signature of other files",
            ),
        ],
        lambda _, problem: problem in ("does not fit", "is the signature of other files"),
    ),
)
def test_a_damaged_signature_of_the_weights_is_named_without_a_key(chain, damage, problem):
    path = chain.store / "signatures" / f"{chain.refs['release'].digest[:16]}.sig"
    damage(path, path.read_bytes())
    (finding,) = audit(RELEASED, chain.tracking_uri, str(chain.store)).findings

    assert str(path) == finding.object
    assert problem in finding.problem


def test_the_signature_of_another_release_is_named(chain):
    other = chain.refs["policy"].digest
    signed = sign_model(str(chain.store), other)
    path = chain.store / "signatures" / f"{chain.refs['release'].digest[:16]}.sig"
    shutil.copy(signed, path)
    (finding,) = audit(RELEASED, chain.tracking_uri, str(chain.store)).findings

    assert (str(path), "is the signature of other files") == (finding.object, finding.problem)


def test_a_genuine_statement_under_another_name_is_named(chain, owner):
    shutil.copy(chain.statement("sft/reasoning"), chain.statement("policy"))
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)

    assert [str(chain.statement("policy"))] == [one.object for one in report.findings]


def test_statements_of_version_0_1_0_are_proved_but_signed_by_nobody(chain, owner):
    digest = chain.refs["release"].statement
    statement = load_statement(str(chain.store), digest)
    payload = canonical_json(statement.model_dump(exclude={"lock", "container"}))
    name = sha256_bytes(payload)
    store_at(statement_uri(str(chain.store), name)).write_bytes(payload)
    unsigned, signed = Evidence(str(chain.store)), Evidence(str(chain.store), owner)
    unsigned.visit(name)
    signed.visit(name)

    assert {} == unsigned.findings
    assert ["signed by nobody"] == [one.problem for one in signed.findings[name]]
