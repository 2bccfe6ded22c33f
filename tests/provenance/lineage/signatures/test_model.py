"""The signature of released weights; `make test-tools` verifies it with OpenSSF's own tool."""

import base64
import hashlib
import json
from pathlib import Path

import pytest

from tasks.errors import TamperError
from tasks.provenance.lineage.signatures.dsse import public_pem
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.provenance.lineage.signatures.model import sign_model, signers_of, to_payload
from tasks.store.local import new_object
from tasks.store.manifest import MANIFEST, manifest_files


@pytest.fixture
def model(tmp_path):
    with new_object(tmp_path) as (folder, committed):
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "a").mkdir()
        (folder / "a" / "b.json").write_text("{}")
        (folder / "a-b").write_text("")
    return committed


def files(model) -> dict[str, str]:
    return manifest_files(Path(model.uri, MANIFEST).read_bytes(), MANIFEST)


def test_a_signature_is_a_sigstore_bundle_that_lists_every_file(model, tmp_path):
    uri = sign_model(str(tmp_path), model.digest)
    bundle = json.loads((tmp_path / "signatures" / f"{model.digest[:16]}.sig").read_bytes())
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    statement = json.loads(payload)
    signer = find_signer()
    assert signer
    hint = hashlib.sha256(public_pem(signer.public_key)).hexdigest()

    assert f"{tmp_path}/signatures/{model.digest[:16]}.sig" == uri
    assert "application/vnd.dev.sigstore.bundle.v0.3+json" == bundle["mediaType"]
    assert {"publicKey": {"hint": hint}, "tlogEntries": []} == bundle["verificationMaterial"]
    assert [
        ("MANIFEST.json", model.digest),
        ("a/b.json", hashlib.sha256(b"{}").hexdigest()),
        ("a-b", hashlib.sha256(b"").hexdigest()),
        ("model.safetensors", hashlib.sha256(b"weights").hexdigest()),
    ] == [(one["name"], one["digest"]) for one in statement["predicate"]["resources"]]


def test_the_digest_of_the_subject_is_that_of_all_digests_in_order():
    payload = json.loads(to_payload("ab" * 32, {"z": "cd" * 32}))
    expected = hashlib.sha256(bytes.fromhex("ab" * 32 + "cd" * 32)).hexdigest()

    assert [{"name": "ab" * 8, "digest": {"sha256": expected}}] == payload["subject"]


def test_a_signature_fits_the_files_it_lists_only(model, tmp_path):
    sign_model(str(tmp_path), model.digest)
    bundle = (tmp_path / "signatures" / f"{model.digest[:16]}.sig").read_bytes()
    signer = find_signer()
    assert signer
    listed = files(model)

    assert (signer.public,) == signers_of(bundle, model.digest, listed)
    for changed in ({**listed, "more": "0" * 64}, {}, {**listed, "a-b": "0" * 64}):
        with pytest.raises(TamperError, match="of other files"):
            signers_of(bundle, model.digest, changed)


def test_the_same_model_is_signed_with_the_same_bytes(model, tmp_path):
    path = tmp_path / "signatures" / f"{model.digest[:16]}.sig"
    sign_model(str(tmp_path), model.digest)
    first = path.read_bytes()
    sign_model(str(tmp_path), model.digest)

    assert first == path.read_bytes()


def test_a_changed_manifest_is_never_signed(model, tmp_path):
    (tmp_path / "objects" / model.digest[:16] / MANIFEST).write_text('{"files":{}}')
    with pytest.raises(TamperError, match="recorded"):
        sign_model(str(tmp_path), model.digest)
