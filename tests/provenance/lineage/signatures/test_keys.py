"""Keys and envelopes."""

import hashlib
import stat
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tasks.errors import SettingsError
from tasks.provenance.lineage.signatures.dsse import (
    Signature,
    Signer,
    fingerprint,
    is_valid,
    payload_of,
    public_pem,
    seal,
    signer_of,
)
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer, read_public_keys

PAYLOAD = b'{"_type":"x"}'


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "keys" / "signing_key.pem"
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def found(store: str = "") -> Signer:
    signer = find_signer(store)
    assert signer
    return signer


def test_the_first_use_creates_a_key_that_only_its_owner_reads(path):
    signer = found()
    public = path.with_name("signing_key.pem.pub")

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert signer.public == found().public
    assert [signer.public] == list(read_public_keys(public))


def test_without_a_variable_the_key_lies_below_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    find_signer()

    assert (tmp_path / ".config" / "eachprompt" / "signing_key.pem").is_file()


def test_the_fingerprint_is_that_of_openssl(path):
    signer = found()
    command = ["openssl", "pkey", "-pubin", "-in", f"{path}.pub", "-outform", "DER"]
    der = subprocess.run(command, capture_output=True, check=True).stdout

    assert hashlib.sha256(der).hexdigest() == fingerprint(signer.public)


def test_openssl_verifies_a_signature_over_the_encoding_of_dsse(path, tmp_path):
    # The example of the DSSE specification: "DSSEv1 <length> <type> <length> <payload>".
    signed = tmp_path / "signed"
    signed.write_bytes(b"DSSEv1 28 application/vnd.in-toto+json 13 " + PAYLOAD)
    signature = found().sign(PAYLOAD)
    raw = tmp_path / "signature"
    raw.write_bytes(payload_of(seal(b"", []).model_copy(update={"payload": signature.sig})))
    command = ["openssl", "dgst", "-sha256", "-verify", f"{path}.pub", "-signature"]

    done = subprocess.run([*command, raw, signed], capture_output=True, text=True, check=True)
    assert "Verified OK\n" == done.stdout


def test_the_same_payload_is_signed_with_the_same_bytes(path):
    assert found().sign(PAYLOAD) == found().sign(PAYLOAD)


def test_a_signature_fits_its_own_payload_and_key_only(path):
    signature = found().sign(PAYLOAD)
    other = signer_of(ec.generate_private_key(ec.SECP256R1()))

    assert is_valid(signature, PAYLOAD)
    assert not is_valid(signature, PAYLOAD + b" ")
    assert not is_valid(signature.model_copy(update={"keyid": other.public}), PAYLOAD)
    assert not is_valid(Signature(keyid="", sig=""), PAYLOAD)
    assert not is_valid(Signature(keyid=signature.keyid, sig="no base64"), PAYLOAD)


@pytest.mark.parametrize("text", ["e30", "e30=\n", "e31=", "ü"])
def test_base64_has_one_spelling(text):
    with pytest.raises(ValueError, match="base64"):
        payload_of(seal(b"", []).model_copy(update={"payload": text}))


@pytest.mark.parametrize(
    "name", ["gcpkms://projects/x", "hashivault://key", "sigstore", "pkcs11:token"]
)
def test_what_is_no_file_is_refused_by_name(monkeypatch, name):
    monkeypatch.setenv(KEY_VARIABLE, name)
    with pytest.raises(SettingsError, match="a PEM file and one of AWS KMS"):
        find_signer()


def test_a_key_in_the_store_is_refused(path):
    with pytest.raises(SettingsError, match="lies in the store"):
        find_signer(str(path.parent))


def test_a_key_is_never_created_in_a_pod(path, monkeypatch, caplog):
    monkeypatch.setenv("FLYTE_INTERNAL_EXECUTION_ID", "f1")
    with pytest.raises(SettingsError, match="Mount the key"):
        find_signer()

    monkeypatch.delenv(KEY_VARIABLE)
    assert find_signer() is None
    assert "is not signed" in caplog.text


def _pem(key, password: bytes = b"") -> bytes:
    protection = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, protection)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        _pem(ed25519.Ed25519PrivateKey.generate()),
        _pem(ec.generate_private_key(ec.SECP384R1())),
        _pem(ec.generate_private_key(ec.SECP256R1()), b"secret"),
    ],
    ids=["empty", "text", "Ed25519", "P-384", "with a password"],
)
def test_a_file_that_is_no_usable_key_says_how_to_make_one(path, content):
    path.parent.mkdir()
    path.write_bytes(content)

    with pytest.raises(SettingsError, match="openssl ecparam -name prime256v1"):
        find_signer()


def test_a_file_of_public_keys_may_hold_several(tmp_path):
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    (tmp_path / "keys.pem").write_bytes(b"".join(public_pem(key.public_key()) for key in keys))

    assert [signer_of(key).public for key in keys] == list(read_public_keys(tmp_path / "keys.pem"))


def test_a_file_without_public_keys_is_refused(path, tmp_path):
    found()
    (tmp_path / "empty").write_text("")
    other = ec.generate_private_key(ec.SECP384R1()).public_key()
    (tmp_path / "mixed").write_bytes(
        path.with_name("signing_key.pem.pub").read_bytes() + public_pem(other)
    )

    for name, message in (
        ("missing", "cannot be read"),
        ("empty", "public keys of P-256"),
        ("mixed", "public keys of P-256"),
        (str(path), "is a private key"),
    ):
        with pytest.raises(SettingsError, match=message):
            read_public_keys(tmp_path / name)
