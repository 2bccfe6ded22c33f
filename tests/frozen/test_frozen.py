"""A store that an earlier release wrote is audited, as it is, by the code of today."""

import shutil
from pathlib import Path

import pytest

from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.signatures.keys import read_public_keys
from tasks.provenance.lineage.statements import open_statement
from tests.frozen.__main__ import PUBLIC

STORES = sorted(path.parent for path in Path(__file__).parent.glob("*/store.json"))


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
