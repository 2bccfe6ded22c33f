"""The contract of a store, on disk and in S3, and which uri means which."""

import random
import threading
from pathlib import Path

import pytest

from tasks.errors import DataError, SettingsError
from tasks.store.files import sha256_bytes
from tasks.store.interface import Store, store_at
from tasks.store.local import LocalStore
from tasks.store.s3 import S3Store


@pytest.fixture
def store(place) -> Store:
    return store_at(place)


def test_a_store_keeps_its_id(store, place):
    first = store.open()

    assert 32 == len(first)
    assert first == store_at(place).open()
    assert first != store_at(f"{place}-other").open()
    assert {"store.json"} == store.list_files().keys()


def test_what_was_written_is_read_hashed_and_listed(store):
    store.write_bytes(b"old", "sub/a")
    store.write_bytes(b"abc", "sub/a")
    store.write_bytes(b"", "b")

    assert b"abc" == store.read_bytes("sub/a")
    assert sha256_bytes(b"abc") == store.sha256("sub/a")
    assert {"b": 0, "sub/a": 3} == store.list_files()
    assert {"a": 3} == store.list_files("sub")


@pytest.mark.slow
def test_a_fingerprint_follows_the_content_of_a_file(store):
    for name in ("a", "sub/b", "same"):
        store.write_bytes(name[:1].encode(), name)
    before = store.fingerprints(["a", "sub/b", "gone"])
    store.write_bytes(b"new", "a")
    store.write_bytes(b"s", "sub/b")
    after = store.fingerprints(["a", "sub/b", "same"])

    assert {"a", "sub/b"} == before.keys()
    assert before["a"] != after["a"]
    assert before["sub/b"] == after["sub/b"] == after["same"]


def test_a_name_may_be_part_of_the_uri(store, place):
    store_at(f"{place}/sub/a").write_bytes(b"abc")

    assert b"abc" == store_at(f"{place}/sub").read_bytes("a") == store.read_bytes("sub/a")
    assert sha256_bytes(b"abc") == store_at(f"{place}/sub/a").sha256()
    assert f"{place}/sub" == store_at(f"{place}/sub").uri


def test_a_prefix_of_a_name_is_no_folder(store):
    store.write_bytes(b"abc", "state-1/a")

    assert {} == store.list_files("state")
    store.delete_folder("state")
    assert {"state-1/a"} == store.list_files().keys()


def test_what_is_not_there_is_named(store, place, tmp_path):
    for ask in (store.read_bytes, store.sha256):
        with pytest.raises(DataError, match=f"{place}/sub/a"):
            ask("sub/a")
    with pytest.raises(DataError, match=f"{place}/sub/a is gone"):
        store.download_file(tmp_path / "copy", "sub/a")
    assert {} == store.list_files()
    assert not (tmp_path / "copy").exists()


def test_files_are_copied_there_and_back(store, tmp_path):
    payload = bytes(range(256)) * 1000
    (tmp_path / "a").write_bytes(payload)
    store.upload_file(tmp_path / "a", "sub/a")
    store.download_file(tmp_path / "new" / "folder" / "a", "sub/a")

    assert payload == (tmp_path / "new" / "folder" / "a").read_bytes()
    assert {"sub/a": 256_000} == store.list_files()


def test_a_file_of_two_parts_is_copied_there_and_back(store, tmp_path):
    payload = random.Random(0).randbytes(9 * 2**20)
    (tmp_path / "a").write_bytes(payload)
    store.upload_file(tmp_path / "a", "sub/a")
    store.download_file(tmp_path / "b", "sub/a")

    assert payload == (tmp_path / "b").read_bytes()
    assert sha256_bytes(payload) == store.sha256("sub/a")
    assert {"sub/a": len(payload)} == store.list_files()


def test_an_upload_to_s3_that_is_broken_off_is_no_file(bucket):
    place = {"Bucket": "bucket", "Key": "store/a"}
    upload = {**place, "UploadId": bucket.create_multipart_upload(**place)["UploadId"]}
    bucket.upload_part(**upload, PartNumber=1, Body=b"a part")
    before = S3Store("s3://bucket/store").list_files()
    bucket.abort_multipart_upload(**upload)

    assert {} == before == S3Store("s3://bucket/store").list_files()
    assert not bucket.list_multipart_uploads(Bucket="bucket").get("Uploads")


def test_of_many_creators_one_wins_and_its_content_stays(store):
    won: list[int] = []

    def create(number: int) -> None:
        if store.create_bytes(str(number).encode(), "mark"):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [int(store.read_bytes("mark"))] == won
    assert {"mark"} == store.list_files().keys()


def test_deleting_is_done_once_and_asked_for_twice(store):
    for name in ("folder/MANIFEST.json", "folder/sub/a", "b", "c"):
        store.write_bytes(b"x", name)
    for _ in range(2):
        store.delete_file("b")
        store.delete_folder("folder")

        assert {"c"} == store.list_files().keys()


def test_a_path_is_local_and_s3_is_not(tmp_path):
    assert LocalStore(str(tmp_path)) == store_at(str(tmp_path))
    assert tmp_path == store_at(str(tmp_path)).local_path
    assert Path("runs") == store_at("runs").local_path
    assert S3Store("s3://bucket/store") == store_at("s3://bucket/store/")
    assert store_at("s3://bucket").local_path is None


@pytest.mark.parametrize(
    "uri",
    [
        "gs://bucket/store",
        "https://host/store",
        "http://host/store",
        "hf://datasets/a",
        "abfss://b/c",
        "file:///tmp/store",
        "S3://bucket/store",
        "s3a://bucket/store",
        "s3:/bucket/store",
        "gs:/bucket/store",
        "s3://",
        "s3:///store",
    ],
)
def test_another_scheme_is_refused_by_name(uri):
    with pytest.raises(SettingsError, match=f"{uri} is neither a path nor s3://bucket/prefix"):
        store_at(uri)


@pytest.mark.parametrize("uri", ["s3://bucket//x", "s3://bucket/a/./b", "s3://b/../x", "s3://b//"])
def test_an_address_in_s3_has_one_spelling_or_is_refused(uri):
    if uri.endswith("//"):
        assert "s3://b" == store_at(uri).uri
    else:
        with pytest.raises(SettingsError, match="which S3 services read differently"):
            store_at(uri)
