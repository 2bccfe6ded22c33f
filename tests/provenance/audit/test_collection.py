"""Models that nothing needs are deleted, and every audit still proves what was made of them."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.collection import (
    MIN_DAYS,
    collect,
    delete,
    main,
    read_keep,
)
from tasks.provenance.audit.text import verdict
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.catalogue import DELETED, EXPERIMENT, model_name
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.rebuild import rebuild
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.tombstones import bury, tombstone_uri
from tasks.store.location import existing_store
from tests.provenance.audit.conftest import Chain
from tests.slices import sliced

MODELS = {"base", "sft/reasoning", "sft/commerce", "merged"}
"""Models of the chain, and not what its release was made of."""
LATER = time.time() + 60 * 24 * 3600


@pytest.fixture
def store(make_original, tmp_path) -> Chain:
    original = make_original("sqlite")
    shutil.copytree(original.store, tmp_path / "store")
    uri = f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}"
    return replace(original, store=tmp_path / "store", tracking_uri=uri)


def deleted(chain: Chain) -> set[str]:
    notes = collect(str(chain.store), read_keep("released,previous,30d"), LATER)
    delete(existing_store(str(chain.store), chain.tracking_uri), notes)
    return {note.digest for note in notes}


def proved(chain: Chain):
    keys = trusted_keys(str(chain.store))
    return audit("models:/tiny@released", chain.tracking_uri, str(chain.store), keys)


def test_the_released_model_is_proved_when_the_models_behind_it_are_deleted(store):
    gone = deleted(store)
    report = proved(store)

    assert {store.refs[name].digest for name in MODELS} == gone
    assert all(not store.folder(name).exists() for name in MODELS)
    assert all(store.folder(name).exists() for name in ("policy", "release", "curated", "report"))
    assert ((), 4) == (report.findings, report.buried)
    assert "4 models deleted on purpose (tombstones)" in verdict(report)
    assert [] == collect(str(store.store), read_keep("released,30d"), LATER)


def marked(chain: Chain) -> dict[str, set[str]]:
    """Stages and models that MLflow says were deleted, by the place of the note that it names."""
    client = connect(chain.tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    models = client.search_logged_models([experiment])
    runs = client.search_runs([experiment])
    found: dict[str, set[str]] = {}
    for name, tags in (
        *((f"model {model.name}", model.tags) for model in models),
        *((f"run {run.info.run_name}", run.data.tags) for run in runs),
    ):
        if DELETED in tags:
            found.setdefault(tags[DELETED], set()).add(name)
    return found


@pytest.mark.slow
def test_mlflow_says_which_models_were_deleted_and_so_does_one_that_was_rebuilt(store):
    deleted(store)
    stages = {name: name for name in MODELS} | {"base": "foundation", "merged": "merge"}
    shown = {
        tombstone_uri(str(store.store), store.refs[name].digest): {
            f"model {model_name(of)}",
            f"run {of}",
        }
        for name, of in stages.items()
    }

    assert shown == marked(store)
    assert proved(store).proved
    another = replace(store, tracking_uri=f"sqlite:///{store.store / 'again.db'}")
    rebuild(existing_store(str(store.store), another.tracking_uri))
    assert shown == marked(another)
    assert proved(another).proved


def test_a_deletion_that_was_cut_is_finished(store):
    left = store.folder("merged") / "model.safetensors"
    weights = left.read_bytes()
    deleted(store)
    left.parent.mkdir()
    left.write_bytes(weights)

    assert {store.refs["merged"].digest} == deleted(store)
    assert not left.exists()


def test_what_was_made_or_read_in_the_last_days_stays(store):
    assert [] == collect(str(store.store), read_keep("released,90d"), LATER)


def test_a_model_that_is_named_stays(store):
    keep = read_keep(f"released,30d,{store.refs['merged'].digest[:12]}")

    found = {note.digest for note in collect(str(store.store), keep, LATER)}
    assert {store.refs[name].digest for name in MODELS - {"merged"}} == found


@pytest.mark.parametrize(
    "kind",
    sliced(["none", "edited", "of another object"], lambda kind: kind == "of another object"),
)
def test_a_model_without_its_own_tombstone_is_a_finding(store, kind):
    deleted(store)
    note, other = (
        Path(tombstone_uri(str(store.store), store.refs[name].digest))
        for name in ("merged", "sft/commerce")
    )
    match kind:
        case "none":
            note.unlink()
        case "edited":
            envelope = json.loads(note.read_bytes())
            envelope["signatures"][0]["sig"] = "MEUCIQ=="
            note.write_text(json.dumps(envelope))
        case _:
            note.write_bytes(other.read_bytes())

    report = proved(store)
    assert not report.proved
    shown = " ".join(f"{one.object} {one.problem}" for one in report.findings)
    assert store.refs["merged"].digest[:16] in shown


def test_a_released_model_that_somebody_deleted_is_a_finding(store):
    (note, *_) = collect(str(store.store), read_keep("released,30d"), LATER)
    digest = store.refs["release"].digest
    uri = f"{store.store}/objects/{digest[:16]}"
    bury(str(store.store), note.model_copy(update={"digest": digest, "uri": uri}))

    assert ["was deleted, although it has the alias 'released'"] == [
        finding.problem for finding in proved(store).findings
    ]


def test_rows_whose_manifest_is_gone_are_no_deletion_that_was_cut(store):
    (store.folder("curated") / "MANIFEST.json").unlink()

    assert store.refs["curated"].digest not in deleted(store)
    assert not proved(store).proved


def test_nothing_is_deleted_where_a_statement_is_damaged(store):
    store.statement("merged").write_text("{}")

    with pytest.raises(TamperError, match="nothing is deleted"):
        deleted(store)


def test_a_dry_run_deletes_nothing(store, capsys):
    main(["--store", str(store.store), "--keep", "released,previous,30d", "--dry-run"])

    assert "0 models of 0.000 GiB would be deleted." in capsys.readouterr().out
    assert all(store.folder(name).exists() for name in MODELS)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("released,latest,30d", "latest is unknown"),
        ("previous,30d", "released and at least"),
        ("released", f"at least {MIN_DAYS}d"),
        ("released,7d", f"at least {MIN_DAYS}d"),
    ],
)
def test_what_is_kept_is_said_whole(keep, message):
    with pytest.raises(SettingsError, match=message):
        read_keep(keep)


@pytest.mark.slow
def test_a_store_in_s3_is_collected_as_one_on_disk(store, bucket):
    for path in filter(Path.is_file, store.store.rglob("*")):
        key = f"store/{path.relative_to(store.store).as_posix()}"
        bucket.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
    uri = "s3://bucket/store"

    for note in collect(uri, read_keep("released,previous,30d"), LATER):
        bury(uri, note)

    report = audit("models:/tiny@released", store.tracking_uri, uri)
    assert ((), 4) == (report.findings, report.buried)
