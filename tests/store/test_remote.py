"""Objects in S3: the same layout, the same refusals."""

from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from tasks.errors import DataError, EngineError, SettingsError, TamperError
from tasks.store import local, remote

STORE = "s3://bucket/some/store"


@pytest.fixture
def bucket(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        yield client


@pytest.fixture
def made(tmp_path):
    with local.new_object(tmp_path / "here") as (folder, committed):
        (folder / "sub").mkdir()
        (folder / "sub" / "a.bin").write_bytes(b"abc")
        (folder / "b.bin").write_bytes(b"x" * 100)
    return committed


def publish(made) -> str:
    return remote.publish(Path(made.uri), made.digest, STORE)


def test_an_object_goes_to_s3_and_comes_back_the_same(bucket, made, tmp_path):
    uri = publish(made)
    folder = remote.localise(uri, made.digest, tmp_path / "cache")

    assert f"{STORE}/objects/{made.digest[:16]}" == uri
    assert {"MANIFEST.json", "b.bin", "sub/a.bin"} == remote.list_files(uri).keys()
    assert b"abc" == (folder / "sub" / "a.bin").read_bytes()
    assert [] == list(remote.object_problems(uri, made.digest))


def test_a_second_use_comes_from_the_cache(bucket, made, tmp_path):
    uri = publish(made)
    remote.localise(uri, made.digest, tmp_path / "cache")
    bucket.delete_object(Bucket="bucket", Key=f"{uri.removeprefix('s3://bucket/')}/b.bin")

    assert (remote.localise(uri, made.digest, tmp_path / "cache") / "b.bin").exists()


def test_an_upload_that_breaks_off_leaves_no_object(bucket, made):
    (Path(made.uri) / "sub" / "a.bin").unlink()

    with pytest.raises(FileNotFoundError):
        publish(made)
    assert {"b.bin"} == remote.list_files(f"{STORE}/objects/{made.digest[:16]}").keys()


def test_publishing_again_changes_nothing(bucket, made):
    assert publish(made) == publish(made)


def test_publishing_beside_a_damaged_object_is_refused(bucket, made):
    uri = publish(made)
    remote.write_bytes(f"{uri}/b.bin", b"short")

    with pytest.raises(TamperError, match=r"b\.bin: not as committed"):
        publish(made)


@pytest.mark.parametrize("name", ["b.bin", "MANIFEST.json"])
def test_a_flipped_byte_in_s3_names_the_file(bucket, made, tmp_path, name):
    uri = publish(made)
    payload = bytearray(remote.read_bytes(f"{uri}/{name}"))
    payload[-1] ^= 1
    remote.write_bytes(f"{uri}/{name}", bytes(payload))

    assert [f"{uri}/{name}"] == [where for where, _ in remote.object_problems(uri, made.digest)]
    with pytest.raises(TamperError, match=name):
        remote.localise(uri, made.digest, tmp_path / "cache")
    assert not (tmp_path / "cache" / "objects" / made.digest[:16]).exists()


def test_added_and_removed_files_in_s3_are_found(bucket, made):
    uri = publish(made)
    remote.write_bytes(f"{uri}/new.bin", b"")
    remote.delete_file(f"{uri}/b.bin")

    assert [
        (f"{uri}/b.bin", "removed after commit"),
        (f"{uri}/new.bin", "added after commit"),
    ] == list(remote.object_problems(uri, made.digest))


def test_an_object_that_is_not_in_s3_is_gone(bucket, tmp_path):
    with pytest.raises(DataError, match=r"s3://bucket/x/MANIFEST\.json is gone"):
        remote.localise("s3://bucket/x", "0" * 64, tmp_path)
    assert [("s3://bucket/x", "gone")] == list(remote.object_problems("s3://bucket/x", "0" * 64))


def test_a_store_in_s3_keeps_its_id(bucket):
    assert remote.open_store(STORE) == remote.open_store(STORE)


def test_a_bucket_that_is_not_there_is_a_settings_error(bucket):
    with pytest.raises(SettingsError, match="s3://nowhere/x cannot be used"):
        remote.open_store("s3://nowhere/x")


def test_no_answer_from_s3_may_be_tried_again(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "testing")

    with pytest.raises(EngineError, match="s3://bucket/a"):
        remote.read_bytes("s3://bucket/a")


def test_only_one_creator_wins_in_s3(bucket):
    assert remote.create_bytes("s3://bucket/a", b"1")
    assert not remote.create_bytes("s3://bucket/a", b"2")
    assert b"1" == remote.read_bytes("s3://bucket/a")


@pytest.mark.parametrize("place", ["disk", "s3"])
def test_small_files_are_the_same_on_disk_and_in_s3(bucket, tmp_path, place):
    folder = str(tmp_path) if place == "disk" else "s3://bucket/folder"
    remote.write_bytes(f"{folder}/sub/a", b"abc")

    assert b"abc" == remote.read_bytes(f"{folder}/sub/a")
    assert {"sub/a": 3} == remote.list_files(folder)
    assert local.sha256_bytes(b"abc") == remote.sha256_uri(f"{folder}/sub/a")
    remote.delete_file(f"{folder}/sub/a")
    assert {} == remote.list_files(folder)
    with pytest.raises(DataError, match="sub/a"):
        remote.read_bytes(f"{folder}/sub/a")
    with pytest.raises(DataError, match="sub/a is gone"):
        remote.sha256_uri(f"{folder}/sub/a")
