"""Whoever uses a release gets the one that trusted statements of the named store promote."""

import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from data_schemas.statements import Tombstone
from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.base_model import find_base
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    TRUSTED_VARIABLE,
    public_path,
    trusted_keys,
)
from tasks.provenance.lineage.signatures.pages import write_page
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.tombstones import bury
from tasks.provenance.release.publish import publish_release
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Chain, Maker

pytestmark = [
    pytest.mark.attack,
    pytest.mark.parametrize("original", ["sqlite"], indirect=True),
]
RELEASED = "models:/tiny@released"
BY_NUMBER = "models:/tiny/1"


def store_of(chain: Chain, place: Path | None = None) -> StoreRef:
    return StoreRef(uri=str(place or chain.store), id="x", tracking_uri=chain.tracking_uri)


def forge(place: Path, tracking_uri: str) -> tuple[str, str]:
    """Make a release of the same name in a store of somebody else; (statement, uri)."""
    store = StoreRef(uri=str(place), id=store_at(str(place)).open(), tracking_uri=tracking_uri)
    execution = Execution(id="evil", started=0.0)
    with stage("release", ReleaseSettings(name="tiny"), Context(store, execution), "c") as record:
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"weights of somebody else")
            (out / "config.json").write_text("{}")
            (out / "gate.json").write_text('{"released":true,"reasons":[],"comparisons":[]}')
        record.facts(next_promotion("tiny", store.uri, {}, record.digest_of("model")))
        record.facts({"released": 1, "manifest_sha256": "0" * 64})
        ref = record.ref("model", CheckpointRef)
        return ref.statement, ref.uri


def edit_tags(chain: Chain, statement: str, uri: str) -> None:
    """Let MLflow name another statement and another place for the released version."""
    client = connect(chain.tracking_uri)
    version = Lookup(chain.tracking_uri).version(RELEASED)
    assert version.model
    client.set_model_version_tag("tiny", version.number, "statement", statement)
    client.set_logged_model_tags(version.model.id, {"uri": uri})


@pytest.mark.parametrize("place", ["store", "elsewhere"])
def test_two_edited_tags_do_not_choose_what_is_published(
    chain, tmp_path, monkeypatch, migrated, place
):
    """The forged release is signed by a key of its author's, in this store or in another one."""
    shutil.copy(migrated, tmp_path / "evil.db")
    home = chain.store if place == "store" else tmp_path / place
    with monkeypatch.context() as attacker:
        attacker.setenv(KEY_VARIABLE, str(tmp_path / "attacker.pem"))
        edit_tags(chain, *forge(home, f"sqlite:///{tmp_path}/evil.db"))

    with pytest.raises(TamperError, match=r"not signed by a key .* trusts|cannot be read"):
        publish_release(BY_NUMBER, store_of(chain), tmp_path / "by_number")
    assert not (tmp_path / "by_number").exists()
    publish_release(RELEASED, store_of(chain), tmp_path / "out")
    expected = (chain.folder("release") / "model.safetensors").read_bytes()
    assert expected == (tmp_path / "out" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("model", [RELEASED, BY_NUMBER])
def test_a_statement_that_is_no_release_is_none_whatever_mlflow_says(chain, tmp_path, model):
    edit_tags(chain, chain.refs["policy"].statement, chain.refs["policy"].uri)
    if model == RELEASED:
        assert chain.folder("release") == find_base(model, store_of(chain)).folder
        return
    with pytest.raises(TamperError, match="is no release of tiny"):
        find_base(model, store_of(chain))


@pytest.mark.parametrize("model", [RELEASED, BY_NUMBER])
def test_a_copied_store_gives_its_own_files(chain, tmp_path, model):
    copy = tmp_path / "copy"
    shutil.copytree(chain.store, copy)
    shutil.rmtree(chain.store / "objects")

    origin = find_base(model, store_of(chain, copy))
    publish_release(model, store_of(chain, copy), tmp_path / "out")

    assert origin.folder.is_relative_to(copy)
    assert (tmp_path / "out" / "config.json").is_file()


def test_a_release_that_an_unknown_key_signed_is_used_when_its_key_is_named(
    chain, tmp_path, monkeypatch
):
    owner = public_path()
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "reader.pem"))
    with pytest.raises(SettingsError, match=f"signed by .*, and by no key .*{TRUSTED_VARIABLE}"):
        find_base(RELEASED, store_of(chain))
    with pytest.raises(TamperError, match="not signed by a key that this run trusts"):
        find_base(BY_NUMBER, store_of(chain))

    monkeypatch.setenv(TRUSTED_VARIABLE, str(owner))
    assert find_base(RELEASED, store_of(chain)).ref == find_base(BY_NUMBER, store_of(chain)).ref


def test_a_release_whose_chain_is_damaged_is_not_published(chain, tmp_path):
    (chain.folder("policy") / "config.json").write_text("[]")

    with pytest.raises(TamperError, match=r"is not published, its audit has 1 findings, first .*/"):
        publish_release(RELEASED, store_of(chain), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_deleted_promotion_leaves_nothing_released(chain):
    chain.statement("release").unlink()

    with pytest.raises(SettingsError, match="nothing was released as tiny"):
        find_base(RELEASED, store_of(chain))


def test_what_was_signed_for_another_store_counts_for_nothing_here(chain, tmp_path, migrated):
    """Staging and production have one key; somebody copies what staging signed into production."""
    place = tmp_path / "staging"
    shutil.copytree(chain.store, place)
    (place / "store.json").unlink()
    shutil.copy(migrated, tmp_path / "staging.db")
    identity = store_at(str(place)).open()
    uri = f"sqlite:///{tmp_path}/staging.db"
    staging = Maker(StoreRef(uri=str(place), id=identity, tracking_uri=uri), chain.outside)
    staging.refs = dict(chain.refs)
    staging.step("rl/one", "policy", CheckpointRef, ["merged", "curated", "raw"])
    staging.release()
    write_page(str(place), "reports/a.html", "promoted")
    victim = chain.folder("merged")
    note = Tombstone(
        digest=chain.refs["merged"].digest,
        uri=f"{place}/objects/{victim.name}",
        stage="merge",
        statement=chain.refs["merged"].statement,
        bytes=1,
        used=0.0,
        deleted=1.0,
        kept="released,9d",
        store=identity,
    )
    bury(str(place), note)
    for folder in ("statements", "objects", "signatures", "pages", "reports", "tombstones"):
        shutil.copytree(place / folder, chain.store / folder, dirs_exist_ok=True)
    assert chain.folder("release") == find_base(RELEASED, store_of(chain)).folder

    shutil.rmtree(victim)
    owner = trusted_keys()
    problems = [
        one.problem
        for one in audit(BY_NUMBER, chain.tracking_uri, str(chain.store), owner).findings
    ]

    assert any("is of another store" in one for one in problems), problems
    assert any("is not a page that was signed" in one for one in problems), problems
    edit_tags(chain, staging.refs["release"].statement, staging.refs["release"].uri)
    with pytest.raises(TamperError, match="is of another store"):
        find_base(BY_NUMBER, store_of(chain))
