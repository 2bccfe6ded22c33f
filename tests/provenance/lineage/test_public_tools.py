"""Public tools verify what we sign, and name what was changed (make test-tools)."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.statements import Input, Output, Statement
from tasks.errors import TamperError
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.dsse import public_pem
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer, public_path
from tasks.provenance.lineage.signatures.model import (
    bundle_of,
    sign_model,
    signers_of,
    to_payload,
)
from tasks.provenance.lineage.statements import save_statement
from tasks.store.files import canonical_json
from tasks.store.local import new_object
from tasks.store.manifest import MANIFEST, manifest_files
from tests.processes import run_process
from tests.provenance.lineage import envelopes
from tests.records import filled
from tests.test_layout import ROOT

pytestmark = pytest.mark.tools
PYTHON = ROOT / ".venv-tools" / "bin" / "python"


def tool(*arguments: str | Path) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"]}
    done = run_process([PYTHON, *arguments], env=environment, check=False)
    return done.returncode, done.stdout + done.stderr


class Release:
    """An object with its signature."""

    def __init__(self, store: Path) -> None:
        with new_object(store) as (folder, committed):
            (folder / "model-00001-of-00002.safetensors").write_bytes(b"first shard" * 100)
            (folder / "model-00002-of-00002.safetensors").write_bytes(b"second shard" * 100)
            (folder / "config.json").write_text("{}")
            (folder / ".gitattributes").write_text("*.safetensors lfs")
        self.folder = Path(committed.uri)
        self.digest = committed.digest
        self.signature = Path(sign_model(str(store), committed.digest))

    def verify(self, key: Path) -> tuple[int, str]:
        """What model-signing says."""
        named = ("--signature", self.signature, "--public_key", key, "--no-ignore-git-paths")
        return tool("-m", "model_signing", "verify", "key", self.folder, *named)


@pytest.fixture
def release(tmp_path) -> Release:
    find_signer()
    return Release(tmp_path / "store")


def test_model_signing_verifies_a_release(release):
    assert (0, True) == _seen(release.verify(public_path()), "Verification succeeded")


def _flip(release: Release) -> None:
    path = release.folder / "model-00001-of-00002.safetensors"
    payload = bytearray(path.read_bytes())
    payload[7] ^= 1
    path.write_bytes(bytes(payload))


def _swap(release: Release) -> None:
    one, two = sorted(release.folder.glob("*.safetensors"))
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)


def _edit_manifest(release: Release) -> None:
    _flip(release)
    path = release.folder / "MANIFEST.json"
    path.write_bytes(path.read_bytes().replace(b'"bytes":2', b'"bytes":3'))


def _edit_signature(release: Release) -> None:
    content = release.signature.read_bytes()
    release.signature.write_bytes(content.replace(b'"payload":"eyJ', b'"payload":"eyK'))


def _replay(release: Release) -> None:
    store = release.folder.parents[1]
    with new_object(store) as (folder, committed):
        (folder / "config.json").write_text("old")
    shutil.copy(sign_model(str(store), committed.digest), release.signature)


TAMPERING = {
    "a flipped bit": (_flip, "Hash mismatch for 'model-00001-of-00002.safetensors'"),
    "two shards swapped": (_swap, "Hash mismatch"),
    "an extra file": (
        lambda release: (release.folder / "extra").write_text(""),
        "Extra files found in model",
    ),
    "a file gone": (lambda release: (release.folder / "config.json").unlink(), "Missing files"),
    "an edited manifest": (_edit_manifest, "Hash mismatch for 'MANIFEST.json'"),
    "an edited signature": (_edit_signature, "Verification failed"),
    "the signature of an older release": (_replay, "mismatch"),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_model_signing_names_every_kind_of_tampering(release, how):
    tamper, message = TAMPERING[how]
    tamper(release)

    assert (1, True) == _seen(release.verify(public_path()), message)


def test_model_signing_refuses_another_key(release, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.pem"))
    find_signer()

    assert (1, True) == _seen(release.verify(public_path()), "Key mismatch")


def test_securesystemslib_and_in_toto_verify_a_statement(tmp_path):
    digest = "a" * 64
    statement = filled(
        Statement,
        stage="rl/one",
        settings='{"steps":8}',
        lock="f" * 64,
        container="registry/cpu:1",
        inputs=(Input(role="start", uri="objects/x", digest=digest, statement=digest),),
        outputs=(Output(role="model", uri="objects/y", digest=digest),),
        facts={"rows": 3, "share": 0.5, "chosen": "step-2"},
    )
    name = save_statement(str(tmp_path), statement)
    path = tmp_path / "statements" / f"{name}.json"
    script = Path(__file__).with_name("public_tools.py")

    assert (0, True) == _seen(tool(script, path, public_path()), "verified")

    path.write_bytes(path.read_bytes().replace(b'"payload":"eyJ', b'"payload":"eyK'))
    assert (1, True) == _seen(tool(script, path, public_path()), "VerificationError")


@pytest.fixture(scope="module")
def keys():
    return [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]


def verdicts(kind: str, files: dict[str, bytes], folder: Path, *last: str | Path) -> dict:
    """What a public verifier says about each file: whether it is accepted."""
    folder.mkdir()
    for number, content in enumerate(files.values()):
        (folder / f"{number:02d}").write_bytes(content)
    script = Path(__file__).with_name("public_verdicts.py")
    _, output = tool(script, kind, folder, *last)
    shown = re.search(r"^[01]+", output, re.MULTILINE)
    assert shown, output
    return dict(zip(files, map(int, shown[0]), strict=True))


def test_securesystemslib_agrees_with_us_on_forty_envelopes(keys, tmp_path):
    material = envelopes.Material(b'{"_type":"x"}', *keys)
    cases = envelopes.GOOD | envelopes.BAD
    (tmp_path / "key.pem").write_bytes(public_pem(keys[0].public_key()))
    found = verdicts(
        "dsse",
        {name: make(material) for name, make in cases.items()},
        tmp_path / "envelopes",
        tmp_path / "key.pem",
        envelopes.name_of(keys[0].public_key()),
    )

    assert {name: int(name in envelopes.GOOD) for name in cases} == found


def test_model_signing_agrees_with_us_on_forty_envelopes(keys, tmp_path):
    with new_object(tmp_path / "store") as (folder, committed):
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights")
    listed = manifest_files((Path(committed.uri) / MANIFEST).read_bytes(), committed.uri)
    material = envelopes.Material(to_payload(committed.digest, listed), *keys)
    (tmp_path / "key.pem").write_bytes(public_pem(keys[0].public_key()))
    genuine = dsse.Envelope.model_validate_json(material.envelope())
    bundle = json.loads(bundle_of(genuine))
    files = {}
    for name, make in (envelopes.GOOD | envelopes.BAD).items():
        content = make(material)
        try:
            files[name] = canonical_json(bundle | {"dsseEnvelope": json.loads(content)})
        except ValueError:
            files[name] = content
    trusted = envelopes.name_of(keys[0].public_key())

    def is_ours(content: bytes) -> int:
        try:
            return int(trusted in signers_of(content, committed.digest, listed))
        except TamperError:
            return 0

    where = (tmp_path / "key.pem", committed.uri)
    found = verdicts("model-signing", files, tmp_path / "bundles", *where)
    # It looks at the first signature only; a bundle has one, and here two are refused.
    assert 1 == found.pop("signed by the trusted key and another")
    assert {name: is_ours(files[name]) for name in found} == found
    assert 8 == sum(found.values())


def _seen(answer: tuple[int, str], message: str) -> tuple[int, bool]:
    code, output = answer
    assert message in output, output
    return code, True
