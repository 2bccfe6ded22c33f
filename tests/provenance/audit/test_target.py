"""An audit starts at anything that a store has a statement of."""

import shutil

import pytest

from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.target import store_of
from tasks.provenance.audit.text import chain_text
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import missing_version

pytestmark = pytest.mark.parametrize("original", ["sqlite"], indirect=True)
NOWHERE = "sqlite:////nowhere/mlflow.db"


@pytest.fixture
def moved(chain, tmp_path):
    """The store alone, elsewhere, without MLflow and without any file that is not evidence."""
    place = tmp_path / "moved"
    for kind in ("objects", "statements", "signatures"):
        shutil.copytree(chain.store / kind, place / kind)
    shutil.rmtree(chain.store)
    return place


@pytest.mark.parametrize(
    ("name", "statements"), [("release", 9), ("policy", 7), ("base", 1), ("report", 8), ("raw", 1)]
)
def test_any_artifact_is_audited_by_its_digest_without_mlflow(chain, moved, name, statements):
    report = audit(chain.refs[name].digest[:16], NOWHERE, str(moved))

    assert () == report.findings
    assert (statements, False) == (report.statements, report.has_catalogue)
    assert "all as recorded; MLflow was not asked." in chain_text(report)


def test_a_name_is_looked_up_without_loading_mlflow(chain):
    for name in ("models:/tiny@released", "models:/tiny/1"):
        assert "" == missing_version(name, chain.tracking_uri)
    assert "which has models:/tiny@released, models:/tiny/1." in missing_version(
        "models:/tiny/7", chain.tracking_uri
    )
    assert "" == missing_version("models:/tiny/7", "http://of.a.server")
    chain.database.write_bytes(b"no database")
    assert "" == missing_version("models:/tiny/7", chain.tracking_uri)


def test_a_statement_is_audited_by_its_digest(chain, moved):
    report = audit(chain.refs["merged"].statement, NOWHERE, str(moved))

    assert () == report.findings
    assert 6 == report.statements


@pytest.mark.parametrize("name", ["release", "curated"])
def test_a_folder_in_a_store_names_its_store(chain, moved, name):
    folder = f"{moved}/objects/{chain.refs[name].digest[:16]}"

    assert str(moved) == store_of(folder, "elsewhere")
    assert audit(folder, NOWHERE, store_of(folder, "elsewhere")).proved


def test_a_copy_of_a_release_is_proved_by_the_statements_of_its_store(chain, moved, tmp_path):
    copy = tmp_path / "download"
    shutil.copytree(moved / "objects" / chain.refs["release"].digest[:16], copy)
    assert audit(str(copy), NOWHERE, str(moved)).proved

    (copy / "model.safetensors").write_bytes(b"other")
    (finding,) = audit(str(copy), NOWHERE, str(moved)).findings
    assert str(copy / "model.safetensors") == finding.object


def test_a_copy_with_an_edited_manifest_was_made_by_nobody(chain, moved, tmp_path):
    copy = tmp_path / "download"
    shutil.copytree(moved / "objects" / chain.refs["release"].digest[:16], copy)
    manifest = copy / "MANIFEST.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"bytes":', b'"bytes": '))

    with pytest.raises(TamperError, match=r"no statement of .* made this artifact"):
        audit(str(copy), NOWHERE, str(moved))


def test_damage_in_a_moved_store_is_named_where_it_is_now(chain, moved):
    path = moved / "objects" / chain.refs["policy"].digest[:16] / "model.safetensors"
    path.write_bytes(b"other")
    report = audit(chain.refs["release"].digest, NOWHERE, str(moved))

    assert [str(path)] == [one.object for one in report.findings]


def test_what_nobody_made_is_the_users_to_correct(chain, moved, tmp_path):
    for name, message in (
        ("0" * 64, "no statement in .* made it"),
        (str(tmp_path), "is no artifact, MANIFEST.json is gone"),
        (str(moved / "objects" / ("0" * 16)), "made it"),
        ("gs://bucket/model", "use models:/NAME@released"),
    ):
        with pytest.raises(SettingsError, match=message):
            audit(name, NOWHERE, str(moved))
