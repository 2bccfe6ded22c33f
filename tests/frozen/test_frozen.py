"""A store that an earlier release wrote is audited and retrained from by the code of today."""

import json
import shutil
from pathlib import Path

import pytest

from data_schemas.rows import ROWS
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.rebuild import rebuild
from tasks.provenance.lineage.signatures.keys import read_public_keys
from tasks.provenance.lineage.statements import open_statement
from tasks.retraining.released import find_released
from tasks.stages.rows import trace
from tasks.store.interface import store_at
from tasks.store.location import existing_store
from tests.frozen.__main__ import PUBLIC
from tests.provenance.audit.conftest import RELEASE
from tests.slices import sliced

STORES = sorted(path.parent for path in Path(__file__).parent.glob("*/store.json"))
TRACED = [path for path in STORES if [*path.glob(f"objects/*/{ROWS}")]]
"""The first one has no tables of rows."""


def release_of(store: Path) -> tuple[str, str]:
    """Statement and digest of the release."""
    for path in (store / "statements").iterdir():
        found = open_statement(path.read_bytes(), path.stem, str(store)).statement
        if found.stage == "release":
            return path.stem, found.outputs[0].digest
    raise AssertionError(f"{store} has no release")


@pytest.mark.parametrize("frozen", STORES, ids=lambda path: path.name)
def test_a_store_of_an_earlier_release_is_proved(frozen, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(frozen, store)
    _, digest = release_of(store)
    keys = read_public_keys(frozen / PUBLIC)

    report = audit(digest, f"sqlite:///{tmp_path / 'none.db'}", str(store), keys)

    assert report.proved, report.findings
    path = next((store / "objects" / digest[:16]).glob("*.safetensors"))
    path.chmod(0o644)
    path.write_bytes(b"other weights")
    assert not audit(digest, f"sqlite:///{tmp_path / 'none.db'}", str(store), keys).proved


@pytest.mark.parametrize("frozen", TRACED, ids=lambda path: path.name)
def test_a_row_of_an_earlier_version_is_followed_to_what_it_trained(frozen, tmp_path, capsys):
    shutil.copytree(frozen, tmp_path / "store")
    asked = dict.fromkeys(("model", "file", "source", "verifier", "judge"), "")
    row = "What is 3 plus 1?"

    trace.task_function(**asked, row=row, store=str(tmp_path / "store"), show=5, format="json")
    found = json.loads(capsys.readouterr().out)

    assert ["problem", "demonstration"] == [one["kind"] for one in found["outcomes"]]
    assert [("sft/reasoning", True)] == [(one["stage"], one["trained"]) for one in found["uses"]]
    made = [one["stage"] for one in found["checkpoints"]]
    assert ["sft/reasoning", "merge", "rl/one"] == made


@pytest.mark.parametrize(
    "frozen", sliced(STORES, lambda path: path == STORES[-1]), ids=lambda path: path.name
)
def test_a_night_starts_from_a_release_of_an_earlier_version(
    frozen, tmp_path, migrated, monkeypatch
):
    monkeypatch.setenv("EACHPROMPT_TRUSTED_KEYS", str(frozen / PUBLIC))
    shutil.copytree(frozen, tmp_path / "store")
    shutil.copy(migrated, tmp_path / "mlflow.db")  # what the release knew of MLflow is lost
    store = existing_store(str(tmp_path / "store"), f"sqlite:///{tmp_path / 'mlflow.db'}")
    rebuild(store)

    found = find_released(RELEASE.name, store.tracking_uri, store.uri)

    statement, _ = release_of(tmp_path / "store")
    assert statement == found.statement
    assert {"model.safetensors", "config.json"} <= set(store_at(found.model.uri).list_files())
    assert "problems.parquet" in store_at(found.held_out.uri).list_files()
