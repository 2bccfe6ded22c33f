"""Keys of AWS KMS, against a service of its protocol (moto's hashes a digest once more)."""

import base64
import json
import subprocess
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from tasks.errors import EngineError, SettingsError
from tasks.provenance.lineage.signatures.dsse import is_valid
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    find_signer,
    public_half,
    read_public_keys,
)
from tests.chat_endpoint import endpoint, send
from tests.slices import sliced

ALIAS = "alias/release"
PAYLOAD = b'{"_type":"x"}' * 1000  # more than the 4,096 bytes that the service signs itself


class Service:
    """Keys by name, and what was asked."""

    def __init__(self) -> None:
        self.keys = {ALIAS: (ec.generate_private_key(ec.SECP256R1()), "ECC_NIST_P256")}
        self.asked: list[dict[str, str]] = []
        self.failure: tuple[int, str] | None = None
        self.der: bytes | None = None  # in place of the public key's

    def answer(self, target: str, asked: dict[str, str]) -> tuple[int, dict[str, str]]:
        self.asked.append(asked)
        if self.failure:
            return self.failure[0], {"__type": self.failure[1], "message": "no"}
        if asked["KeyId"] not in self.keys:
            return 400, {"__type": "NotFoundException", "message": asked["KeyId"]}
        key, spec = self.keys[asked["KeyId"]]
        if target == "TrentService.GetPublicKey":
            der = key.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            kind = {"KeyUsage": "SIGN_VERIFY", "KeySpec": spec}
            return 200, {**kind, "PublicKey": base64.b64encode(self.der or der).decode()}
        assert ("TrentService.Sign", "DIGEST") == (target, asked["MessageType"])
        algorithm = ec.ECDSA(Prehashed(hashes.SHA256()))
        signature = key.sign(base64.b64decode(asked["Message"]), algorithm)
        return 200, {"Signature": base64.b64encode(signature).decode()}


@pytest.fixture
def service(monkeypatch) -> Iterator[Service]:
    found = Service()

    def behave(handler, asked, _):
        status, answer = found.answer(handler.headers["X-Amz-Target"], asked)
        send(handler, json.dumps(answer).encode(), status)

    with endpoint(behave) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setenv(KEY_VARIABLE, f"awskms:///{ALIAS}")
        yield found


def test_the_service_signs_a_digest_and_anybody_verifies_it(service, tmp_path):
    signer = find_signer()
    assert signer
    signature = signer.sign(PAYLOAD)

    assert is_valid(signature, PAYLOAD)
    assert not is_valid(signature, PAYLOAD + b" ")
    assert 32 == len(base64.b64decode(service.asked[-1]["Message"]))
    der = tmp_path / "release.der"
    der.write_bytes(
        base64.b64decode(
            service.answer("TrentService.GetPublicKey", {"KeyId": ALIAS})[1]["PublicKey"]
        )
    )
    pem = tmp_path / "release.pub"
    subprocess.run(
        ["openssl", "pkey", "-pubin", "-inform", "DER", "-in", der, "-out", pem], check=True
    )
    assert [signer.public] == list(read_public_keys(pem))
    assert f"awskms:///{ALIAS} (aws kms get-public-key)" == public_half()


def test_a_pod_needs_no_mounted_key(service, monkeypatch):
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "f1")

    assert find_signer()


@pytest.mark.parametrize(
    "address",
    ["awskms:alias/release", "awskms://kms.example/alias/release", "awskms:///", "awskms:///a b"],
)
def test_an_address_of_another_form_is_refused(service, monkeypatch, address):
    monkeypatch.setenv(KEY_VARIABLE, address)
    with pytest.raises(SettingsError, match="Write awskms:///alias/NAME"):
        find_signer()
    assert [] == service.asked


@pytest.mark.parametrize("der", [None, b"of a kind that cryptography cannot read"])
def test_a_key_of_another_kind_is_refused_with_the_command_for_a_right_one(service, der):
    service.keys[ALIAS] = (ec.generate_private_key(ec.SECP384R1()), "ECC_NIST_P384")
    service.der = der
    with pytest.raises(SettingsError, match=r"ECC_NIST_P384 for SIGN_VERIFY.*create-key"):
        find_signer()


@pytest.mark.parametrize("moment", ["find", "sign"])
@pytest.mark.parametrize(
    ("failure", "error"),
    sliced(
        [
            ((400, "AccessDeniedException"), SettingsError),
            ((400, "DisabledException"), SettingsError),
            ((400, "ThrottlingException"), EngineError),
            ((500, "KMSInternalException"), EngineError),
        ],
        lambda failure, _: failure[1] in ("AccessDeniedException", "KMSInternalException"),
    ),
)
def test_what_the_service_refuses_is_retried_only_where_that_helps(service, failure, error, moment):
    signer = find_signer()
    assert signer
    service.failure = failure
    with pytest.raises(error, match=f"awskms:///{ALIAS}.*{failure[1]}"):
        find_signer() if moment == "find" else signer.sign(PAYLOAD)


def test_a_key_that_is_not_there_is_the_users_mistake(service, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "awskms:///alias/typo")
    with pytest.raises(SettingsError, match=r"alias/typo.*kms:GetPublicKey"):
        find_signer()


def test_a_service_that_does_not_answer_is_tried_again(service, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(EngineError, match="awskms"):
        find_signer()


@pytest.mark.parametrize("missing", ["AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"])
def test_missing_credentials_are_named(service, monkeypatch, tmp_path, missing):
    monkeypatch.delenv(missing)
    if missing == "AWS_ACCESS_KEY_ID":
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SettingsError, match="Set credentials and region"):
        find_signer()
