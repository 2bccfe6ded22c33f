"""After an outage: everything arrives once, in the order of production, whoever sends it."""

import os
import random
import shutil
import stat
import uuid
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef, Context, StoreRef
from data_schemas.settings import MergeSettings
from tasks.errors import EngineError, SettingsError
from tasks.provenance.lineage.shipping import sync, workplace
from tasks.provenance.lineage.stage import stage
from tasks.store.interface import store_at
from tests.buckets import served_bucket
from tests.provenance.lineage.forked import forked
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train
from tests.tracked import content

AWAY = "http://127.0.0.1:9"


def keep_for_later(store: StoreRef, execution, executions: int) -> None:
    """Run stages while MLflow is away."""
    away = store.model_copy(update={"tracking_uri": AWAY})
    for number in range(executions):
        run = execution.model_copy(update={"id": f"exec-{number}"})
        train(away, run, make_raw(away, run, f"{number}\n".encode()))


@pytest.mark.slow
def test_four_syncs_at_once_make_every_run_once(store, execution):
    keep_for_later(store, execution, executions=6)
    forked("sync", store.model_dump_json())

    found = content(store.tracking_uri)
    assert 12 + 6 == len(found["runs"])  # of stages, and of executions
    assert 6 == len(found["models"])
    assert {"FINISHED"} == {run["status"] for run in found["runs"]}


@pytest.mark.slow
def test_spools_that_arrive_in_any_order_give_the_same_mlflow(store, execution, tmp_path, migrated):
    keep_for_later(store, execution, executions=2)
    spool = Path(store.uri) / "spool"
    shuffled = sorted(spool.glob("*.jsonl"))
    contents = []
    for seed in range(2):
        random.Random(seed).shuffle(shuffled)
        for moment, path in enumerate(shuffled):
            os.utime(path, (moment, moment))
        database = tmp_path / f"{seed}.db"
        shutil.copy(migrated, database)
        shutil.copytree(store.uri, tmp_path / f"store{seed}")
        copied = {"uri": str(tmp_path / f"store{seed}"), "tracking_uri": f"sqlite:///{database}"}
        sync(store.model_copy(update=copied))
        contents.append(content(copied["tracking_uri"]))

    assert contents[0] == contents[1]
    assert 4 + 2 == len(contents[0]["runs"])


@pytest.fixture
def s3_store(monkeypatch, store, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    bucket = f"bucket-{uuid.uuid4().hex}"  # servers of one process share their buckets
    uri = f"s3://{bucket}/store"
    with served_bucket(monkeypatch, bucket):
        yield StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=store.tracking_uri)


@pytest.mark.slow
def test_spools_fetched_from_s3_arrive_producers_first_and_are_kept(s3_store, execution, tmp_path):
    away = s3_store.model_copy(update={"tracking_uri": AWAY})
    model = train(away, execution, make_raw(away, execution))
    # On another machine, whose disk is empty: 'another' comes before 'exec-1'.
    shutil.rmtree(workplace(s3_store))
    with pytest.raises(EngineError, match="MLflow does not answer"):
        release(away, execution.model_copy(update={"id": "another"}), model)
    shutil.rmtree(workplace(s3_store))
    assert sync(s3_store)

    found = content(s3_store.tracking_uri)
    assert {"ingest": 1, "sft/reasoning": 1, "release": 1, "exec-1": 1, "another": 1} == {
        run["name"]: [one["name"] for one in found["runs"]].count(run["name"])
        for run in found["runs"]
    }
    (trained,) = [run for run in found["runs"] if run["name"] == "sft/reasoning"]
    (released,) = [run for run in found["runs"] if run["name"] == "release"]
    assert trained["makes"] == released["reads"]
    assert 2 == len(found["models"])
    names = store_at(f"{s3_store.uri}/spool").list_files()
    assert 3 == len([name for name in names if name.startswith("shipped/")])
    assert [] == [name for name in names if name.endswith(".jsonl") and "/" not in name]


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("moment", ["after the inputs", "after the outputs"])
def test_a_temporary_directory_that_is_wiped_ends_the_stage_and_the_next_attempt_is_the_same(
    s3_store, execution, tmp_path, moment
):
    raw = make_raw(s3_store, execution)

    def attempt(wiped: str) -> CheckpointRef:
        with stage("merge", MergeSettings(), Context(s3_store, execution), "c") as record:
            rows = (record.read("demonstrations", raw) / "rows.csv").read_bytes()
            if wiped == "after the inputs":
                shutil.rmtree(workplace(s3_store))
            with record.output("model") as out:
                (out / "model.safetensors").write_bytes(rows)
            ref = record.ref("model", CheckpointRef)
            if wiped == "after the outputs":
                shutil.rmtree(workplace(s3_store))
        return ref

    with pytest.raises(EngineError, match="was deleted while its stage ran"):
        attempt(wiped=moment)
    again = attempt(wiped="")

    assert again == attempt(wiped="")
    runs = content(s3_store.tracking_uri)["runs"]
    assert {"FINISHED"} == {run["status"] for run in runs}


def test_a_release_after_an_outage_sends_what_came_before_it(store, execution):
    away = store.model_copy(update={"tracking_uri": AWAY})
    raw = make_raw(away, execution)
    run_all(store, execution.model_copy(update={"id": "exec-2"}))

    assert raw.statement
    assert {"ingest", "sft.reasoning", "release"} == {
        key.removeprefix("exec-2.")
        for run in content(store.tracking_uri)["runs"]
        if (key := dict(run["tags"])["eachprompt.key"]).startswith("exec-2.")
    }
    assert "exec-1.ingest" in str(content(store.tracking_uri))


@pytest.mark.attack
@pytest.mark.parametrize("kind", ["open to others", "a link", "of another user"])
def test_a_cache_that_somebody_else_made_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    away = StoreRef(uri="s3://bucket/store", id=uuid.uuid4().hex, tracking_uri=AWAY)
    cache = tmp_path / f"eachprompt-{os.getuid()}-{away.id}"
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir()
        cache.symlink_to(tmp_path / "elsewhere")
    else:
        cache.mkdir()
        cache.chmod(0o777 if kind == "open to others" else 0o755)
    if kind == "of another user":
        if os.getuid():
            pytest.skip("only root can give a folder away")
        os.chown(cache, 12345, 12345)

    with pytest.raises(SettingsError, match="is not a folder of this user"):
        workplace(away)
    if kind != "a link":
        shutil.rmtree(cache)
        assert cache == workplace(away)
        assert 0o700 == stat.S_IMODE(cache.stat().st_mode)
