"""A second person's key releases what passed the gate; the run's own key alone does not."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from tasks.errors import SettingsError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.promotions import next_promotion, pending, promotions
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG
from tasks.provenance.lineage.releases import history_of
from tasks.provenance.lineage.signatures.dsse import fingerprint, public_pem, signer_of
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    TRUSTED_VARIABLE,
    find_signer,
    trusted_keys,
)
from tasks.provenance.lineage.stage import stage
from tasks.provenance.release.approval import approve_release
from tasks.retraining.approve import approve
from tests.provenance.lineage.small_chain import make_raw, train

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
NAME = "eachprompt-tiny"
MODEL = f"models:/{NAME}/1"


@pytest.fixture
def people(tmp_path, monkeypatch) -> dict[str, str]:
    """Key files of the run and of two people, all of them trusted by everybody."""
    signers, files = [], {}
    for name in ("run", "ann", "bob"):
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        files[name] = str(tmp_path / f"{name}.pem")
        (tmp_path / f"{name}.pem").write_bytes(pem)
        signers.append(signer_of(key))
    (tmp_path / "trusted.pem").write_bytes(b"".join(public_pem(one.public_key) for one in signers))
    monkeypatch.setenv(TRUSTED_VARIABLE, str(tmp_path / "trusted.pem"))
    monkeypatch.setenv(KEY_VARIABLE, files["run"])
    return files


def release(store: StoreRef, approvals: int, *, forged: bool = False) -> CheckpointRef:
    """Register a candidate that passed its gate; forged: its own key promotes it all the same."""
    execution = Execution(id="e1", started=1.0)
    model = train(store, execution, make_raw(store, execution))
    settings = ReleaseSettings(approvals=approvals)
    with stage("release", settings, Context(store, execution), "code-4") as record:
        record.read("candidate", model)
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"weights")
            (out / "config.json").write_text("{}")
            (out / CARD_FILE).write_text("# Tiny")
        keys = trusted_keys(store.uri)
        record.facts({"released": int(forged), "manifest_sha256": "m" * 64})
        if forged:
            record.facts(next_promotion(NAME, store.uri, keys, record.digest_of("model")))
        else:
            record.facts(pending(NAME, store.uri, keys, approvals))
        record.register("model", NAME, released=forged, tags={MANIFEST_TAG: "m" * 64})
        return record.ref("model", CheckpointRef)


def key_of(file: str) -> str:
    key = serialization.load_pem_private_key(Path(file).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return fingerprint(signer_of(key).public)


def aliases(store: StoreRef) -> dict[str, str]:
    found = connect(store.tracking_uri).get_registered_model(NAME).aliases
    return {name: str(version) for name, version in found.items()}


def test_nothing_is_released_before_as_many_other_keys_said_yes_as_are_asked_for(
    store, people, monkeypatch, capsys
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.tracking_uri)
    folder = release(store, approvals=2)
    assert ([], {}) == (history_of(NAME, store.uri), aliases(store))

    with pytest.raises(SettingsError, match="is signed or approved by this key"):
        approve_release(MODEL, store, "eve", "I made it")
    monkeypatch.setenv(KEY_VARIABLE, people["ann"])
    assert 1 == approve_release(MODEL, store, "ann", "read the answers")
    with pytest.raises(SettingsError, match="is signed or approved by this key"):
        approve_release(MODEL, store, "another ann", "read them twice")
    assert ([], {}) == (history_of(NAME, store.uri), aliases(store))

    monkeypatch.setenv(KEY_VARIABLE, people["bob"])
    approve([MODEL, "--store", store.uri, "--by", "bob", "--because", "so did I"])
    assert f"{MODEL} is approved by bob; it is released." in capsys.readouterr().out
    (promotion,) = history_of(NAME, store.uri)
    assert (1, folder.digest) == (promotion.number, promotion.checkpoint)
    assert {"released": "1"} == aliases(store)
    keys = sorted(key_of(people[name])[:16] for name in ("ann", "bob"))
    report = audit(f"models:/{NAME}@released", store.tracking_uri, store.uri)
    assert f"by key {keys[0]}, {keys[1]}" == report.approved
    with pytest.raises(SettingsError, match="was released already"):
        approve_release(MODEL, store, "bob", "again")


@pytest.mark.attack
def test_a_promotion_by_the_runs_own_key_counts_for_nobody_where_settings_ask_for_another(
    store, people
):
    release(store, approvals=1, forged=True)

    assert [] == promotions(NAME, store.uri, trusted_keys(store.uri))
    assert [] == promotions(NAME, store.uri, None)
    assert {"released": "1"} == aliases(store)  # MLflow's word, which anybody can write
    report = audit(f"models:/{NAME}@released", store.tracking_uri, store.uri)
    assert "has the alias 'released', but 1 approvals by other keys are missing" in [
        finding.problem for node in report.nodes for finding in node.findings
    ]


@pytest.mark.attack
def test_a_key_that_nobody_trusts_approves_nothing(store, people, tmp_path, monkeypatch):
    release(store, approvals=1)
    run, ann = (signer_of_file(people[name], monkeypatch) for name in ("run", "ann"))
    (tmp_path / "trusted.pem").write_bytes(run + ann)
    own = trusted_keys(store.uri)
    stranger = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "stranger.pem").write_bytes(
        stranger.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "stranger.pem"))
    approve_release(MODEL, store, "eve", "why not")

    assert [] == promotions(NAME, store.uri, own)


def test_what_waits_for_nobody_cannot_be_approved(store, people, monkeypatch):
    release(store, approvals=0)
    monkeypatch.setenv(KEY_VARIABLE, people["ann"])

    with pytest.raises(SettingsError, match="its settings ask for none"):
        approve_release(MODEL, store, "ann", "fine")
    with pytest.raises(SettingsError, match="--by is empty"):
        approve_release(MODEL, store, " ", "fine")


def signer_of_file(path: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the public half of a key file."""
    monkeypatch.setenv(KEY_VARIABLE, path)
    signer = find_signer()
    assert signer is not None
    return public_pem(signer.public_key)
