"""What docs/backup.md copies is enough: the restored release is proved, with its key."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.signatures.keys import public_path, read_public_keys
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Chain, Maker

PAGE = (Path(__file__).parents[3] / "docs" / "backup.md").read_text()
COPY, RESTORE = map(dedent, re.findall(r"(?:^ {4}.*\n)+", PAGE, re.MULTILINE))


@pytest.fixture
def store(make_original, tmp_path) -> Chain:
    original = make_original("sqlite")
    shutil.copytree(original.store, tmp_path / "runs")
    uri = f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}"
    return replace(original, store=tmp_path / "runs", tracking_uri=uri)


@pytest.mark.slow
def test_a_store_that_was_lost_is_proved_when_it_is_restored(store, tmp_path):
    subprocess.run(["sh", "-euc", COPY], cwd=tmp_path, check=True)
    shutil.rmtree(store.store)
    store.store.mkdir()  # of a disk that is mounted there
    subprocess.run(["sh", "-euc", RESTORE.splitlines()[0]], cwd=tmp_path, check=True)

    report = audit(
        "models:/tiny@released",
        store.tracking_uri,
        str(store.store),
        read_public_keys(public_path()),
    )

    assert () == report.findings
    assert report.has_catalogue
    assert report.unsigned == 0


def test_what_names_something_is_copied_before_what_it_names():
    (line,) = re.findall(r"for part in (.*?);", COPY.replace("\\\n", " "))
    order = line.split()

    assert order.index("mlflow.db") < order.index("statements") < order.index("objects")


@pytest.mark.slow
def test_a_stage_that_ends_between_two_copies_breaks_no_backup(store, tmp_path):
    first, second = COPY.split("signatures", 1)
    half = f"{first.rstrip()}; do test ! -e runs/$part || cp -a runs/$part backup/; done"
    subprocess.run(["sh", "-euc", half], cwd=tmp_path, check=True)
    maker = Maker(_ref(store), store.outside)
    maker.refs, maker.execution = dict(store.refs), Execution(id="e2", started=0.0)
    maker.step("merge", "later", type(store.refs["merged"]), ["merged", "base"])
    rest = f"for part in signatures{second}"
    subprocess.run(["sh", "-euc", rest], cwd=tmp_path, check=True)
    restored = tmp_path / "restored"  # MLflow keeps a database open that it has written
    (tmp_path / "backup").rename(restored)

    report = audit("models:/tiny@released", f"sqlite:///{restored}/mlflow.db", str(restored))

    assert () == report.findings
    made = maker.refs["later"].digest[:16]
    assert (restored / "objects" / made).exists()  # and nothing that names it


def _ref(store: Chain) -> StoreRef:
    uri = str(store.store)
    return StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=store.tracking_uri)
