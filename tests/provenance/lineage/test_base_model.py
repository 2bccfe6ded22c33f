"""A base model may be in S3 or registered; its content is checked, its origin recorded."""

import itertools
import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.lineage.base_model import find_base
from tasks.provenance.lineage.origins import is_source, present_digest
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement
from tasks.stages.foundation import BaseModelSource
from tasks.store.copies import copy_files, fetch_folder
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tasks.store.objects import publish
from tests.slices import sliced

EXECUTION = Execution(id="e", started=0.0)
EXECUTIONS = (Execution(id=f"ingestion{number}", started=0.0) for number in itertools.count())


@pytest.fixture
def new_store(tmp_path, migrated):
    """Make stores that share one MLflow."""
    shutil.copy(migrated, tmp_path / "mlflow.db")

    def make(uri: str) -> StoreRef:
        tracking_uri = f"sqlite:///{tmp_path}/mlflow.db"
        return StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=tracking_uri)

    return make


def ingest(path: str, store: StoreRef) -> CheckpointRef:
    """Record an ingestion as the stage does, without the checks of the model itself."""
    origin = find_base(path, store)
    with stage(
        "ingest/base", BaseModelSource(path=path), Context(store, next(EXECUTIONS)), "c"
    ) as record:
        origin.record(record)
        with record.output("model") as out:
            shutil.copytree(origin.folder, out, dirs_exist_ok=True)
        return record.ref("model", CheckpointRef)


def test_a_model_in_s3_is_a_root_of_the_lineage_under_its_address(bucket, new_store, tmp_path):
    store = new_store(str(tmp_path / "store"))
    bucket.put_object(Bucket="bucket", Key="qwen/config.json", Body=b"{}")
    bucket.put_object(Bucket="bucket", Key="qwen/sub/model.safetensors", Body=b"weights")

    ref = ingest("s3://bucket/qwen/", store)

    (origin,) = load_statement(store.uri, ref.statement).inputs
    assert "s3://bucket/qwen" == origin.uri
    assert is_source(origin)
    assert ref.digest == origin.digest == present_digest(origin)
    bucket.put_object(Bucket="bucket", Key="qwen/config.json", Body=b"[]")
    assert ref.digest != present_digest(origin)


def test_a_prefix_is_downloaded_once_and_again_when_it_has_changed(bucket, tmp_path):
    bucket.put_object(Bucket="bucket", Key="qwen/config.json", Body=b"{}")

    first = fetch_folder("s3://bucket/qwen", tmp_path)
    (first / "mark").write_text("ours")

    assert first == fetch_folder("s3://bucket/qwen", tmp_path)
    assert (first / "mark").exists()
    bucket.put_object(Bucket="bucket", Key="qwen/config.json", Body=b"[]")
    assert b"[]" == (fetch_folder("s3://bucket/qwen", tmp_path) / "config.json").read_bytes()


@pytest.mark.attack
@pytest.mark.parametrize("key", ["qwen/../../../planted", "qwen//planted", "qwen/a/../../planted"])
def test_a_key_of_a_bucket_is_written_nowhere_else(bucket, tmp_path, key):
    """Keys are any text, and whoever fills the bucket chooses them."""
    bucket.put_object(Bucket="bucket", Key="qwen/config.json", Body=b"{}")
    bucket.put_object(Bucket="bucket", Key=key, Body=b"planted")

    with pytest.raises(DataError, match="which is of no file below it"):
        fetch_folder("s3://bucket/qwen", tmp_path / "a" / "b" / "c")
    assert not [*tmp_path.rglob("planted")]


def test_marks_of_folders_in_a_bucket_are_no_files(bucket, tmp_path):
    for key in ("qwen/", "qwen/sub/", "qwen/sub/config.json"):
        bucket.put_object(Bucket="bucket", Key=key, Body=b"{}" if key.endswith("n") else b"")

    folder = fetch_folder("s3://bucket/qwen", tmp_path)

    assert ["config.json"] == [path.name for path in folder.rglob("*") if path.is_file()]


def test_an_object_of_a_store_is_verified_against_its_manifest(bucket, new_store, tmp_path):
    with new_object(tmp_path / "made") as (folder, made):
        (folder / "config.json").write_bytes(b"{}")
    uri = publish(Path(made.uri), made.digest, "s3://bucket/store")
    store_at(uri).write_bytes(b"[]", "config.json")

    with pytest.raises(TamperError, match=r"config\.json: sha256 is"):
        find_base(uri, new_store(str(tmp_path / "store")))


def release(store: StoreRef) -> CheckpointRef:
    """Promote a model of one file as `tiny`."""
    with stage("release", ReleaseSettings(name="tiny"), Context(store, EXECUTION), "c") as record:
        with record.output("model") as out:
            (out / "config.json").write_bytes(b"{}")
        digest = record.digest_of("model")
        record.facts(next_promotion("tiny", store.uri, trusted_keys(store.uri), digest))
        record.register("model", "tiny", released=True, tags={})
        return record.ref("model", CheckpointRef)


@pytest.mark.slow
@pytest.mark.parametrize("uri", ["here", "s3://bucket/one"])
def test_a_registered_model_continues_the_lineage_of_its_store(bucket, new_store, tmp_path, uri):
    store = new_store(uri if "://" in uri else str(tmp_path / uri))
    released = release(store)

    for name in ("models:/tiny@released", "models:/tiny/1"):
        (origin,) = load_statement(store.uri, ingest(name, store).statement).inputs
        assert (released.uri, released.digest) == (origin.uri, origin.digest)
        assert released.statement == origin.statement


@pytest.mark.parametrize(
    "name", sliced(["models:/tiny@released", "models:/tiny/1"], "models:/tiny@released".__eq__)
)
def test_a_model_of_another_store_is_not_one_of_this(bucket, new_store, tmp_path, name):
    """The two share an MLflow, whose tags name the place of the files."""
    release(new_store("s3://bucket/one"))

    with pytest.raises((SettingsError, TamperError), match=r"nothing was released|cannot be read"):
        find_base(name, new_store(str(tmp_path / "elsewhere")))


def test_a_registered_model_whose_object_was_changed_is_refused(bucket, new_store):
    store = new_store("s3://bucket/store")
    released = release(store)
    payload = store_at(released.uri).read_bytes("MANIFEST.json")
    store_at(released.uri).write_bytes(payload.replace(b"config", b"gonfig"), "MANIFEST.json")
    shutil.rmtree(workplace(store) / "objects")  # another machine

    with pytest.raises(TamperError, match="sha256"):
        find_base("models:/tiny@released", store)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/nothing", "base model s3://bucket/nothing: nothing is below"),
        ("models:/nobody@released", "nothing was released as nobody"),
        ("models:/nobody/1", "is not in this MLflow store"),
    ],
)
def test_what_is_not_there_is_the_users_mistake(bucket, new_store, tmp_path, path, message):
    with pytest.raises(SettingsError, match=message):
        find_base(path, new_store(str(tmp_path / "store")))


def test_raw_files_of_s3_keep_bucket_and_key_in_their_place(bucket, tmp_path):
    for key in ("rows/a.jsonl", "rows/readme.txt", "rows/deep/b.jsonl"):
        bucket.put_object(Bucket="bucket", Key=key, Body=b"{}\n")

    folder = copy_files("s3://bucket/rows/", tmp_path, (".jsonl",))
    file = copy_files("s3://bucket/rows/deep/b.jsonl", tmp_path, (".jsonl",))

    assert tmp_path / "s3/bucket/rows" == folder
    assert [folder / "a.jsonl"] == [path for path in folder.iterdir() if path.is_file()]
    assert b"{}\n" == file.read_bytes()
