"""Listing a folder or an S3 prefix."""

import os

import boto3
import pytest
from moto import mock_aws

from tasks.errors import SettingsError
from tasks.retraining.inbox import fetch, list_files
from tasks.retraining.watermark import advance, load, new_files


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket named 'drop'."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="drop")
        yield client


def test_a_folder_is_listed_whole_and_by_name(tmp_path):
    for name in ("b.jsonl", "2026/a.jsonl", "2026/11/c.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")

    files = list_files(str(tmp_path))

    assert ["2026/11/c.jsonl", "2026/a.jsonl", "b.jsonl"] == [file.key for file in files]
    assert [2, 2, 2] == [file.bytes for file in files]


@pytest.mark.parametrize(
    "name",
    [
        ".hidden.jsonl",
        ".staging/rows.jsonl",
        "_temporary/rows.jsonl",
        "_SUCCESS",
        "rows.jsonl.tmp",
        "rows.jsonl.part",
        "rows.jsonl.crdownload",
        "rows.jsonl~",
    ],
)
def test_hidden_and_partial_files_are_not_there_yet(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    (tmp_path / "empty.jsonl").touch()

    assert [] == list_files(str(tmp_path))


def test_a_file_that_keeps_its_old_date_counts_from_its_arrival(tmp_path):
    inbox, store = tmp_path / "inbox", str(tmp_path / "store")
    inbox.mkdir()
    (inbox / "first.jsonl").write_text("{}")
    advance(store, str(inbox), list_files(str(inbox)))
    late = inbox / "late.jsonl"
    late.write_text("{}")
    os.utime(late, (1_000_000_000, 1_000_000_000))  # as 'cp -p' would

    found = new_files(load(store, str(inbox)), list_files(str(inbox)))

    assert ["late.jsonl"] == [file.key for file in found]


def test_a_file_that_grew_is_new_again(tmp_path):
    inbox, store = tmp_path / "inbox", str(tmp_path / "store")
    inbox.mkdir()
    (inbox / "a.jsonl").write_text("{}")
    advance(store, str(inbox), list_files(str(inbox)))
    (inbox / "a.jsonl").write_text("{}\n{}")

    assert 1 == len(new_files(load(store, str(inbox)), list_files(str(inbox))))


def test_a_missing_folder_is_an_error_and_an_empty_one_is_not(tmp_path):
    assert [] == list_files(str(tmp_path))
    with pytest.raises(SettingsError, match=r"nowhere is not a folder. Create it or set inbox"):
        list_files(str(tmp_path / "nowhere"))


def test_a_prefix_is_listed_over_all_its_pages(bucket):
    for number in range(1003):  # a page holds 1000
        bucket.put_object(Bucket="drop", Key=f"in/{number:04d}.jsonl", Body=b"{}")
    bucket.put_object(Bucket="drop", Key="inside/not-ours.jsonl", Body=b"{}")
    bucket.put_object(Bucket="drop", Key="in/folder/", Body=b"")
    bucket.put_object(Bucket="drop", Key="in/.hidden.jsonl", Body=b"{}")

    files = list_files("s3://drop/in")

    assert 1003 == len(files)
    assert ("0000.jsonl", "s3://drop/in/0000.jsonl") == (files[0].key, files[0].uri)
    assert files == sorted(files, key=lambda file: file.key)


def test_s3_files_are_new_once_and_again_when_their_content_changes(bucket, tmp_path):
    store = str(tmp_path)
    bucket.put_object(Bucket="drop", Key="in/a.jsonl", Body=b"{}")
    first = new_files(load(store, "s3://drop/in"), list_files("s3://drop/in"))
    advance(store, "s3://drop/in", first)

    assert [] == new_files(load(store, "s3://drop/in"), list_files("s3://drop/in"))
    bucket.put_object(Bucket="drop", Key="in/a.jsonl", Body=b"{} ")
    assert ["a.jsonl"] == [
        file.key for file in new_files(load(store, "s3://drop/in"), list_files("s3://drop/in"))
    ]


def test_a_whole_bucket_can_be_the_inbox(bucket, tmp_path):
    bucket.put_object(Bucket="drop", Key="a.jsonl", Body=b"rows")
    (file,) = list_files("s3://drop")

    fetch(file, tmp_path / "copy")

    assert b"rows" == (tmp_path / "copy").read_bytes()


def test_a_missing_bucket_says_which_setting_to_change(bucket):
    with pytest.raises(SettingsError, match=r"s3://nowhere/in is not there .* Set inbox"):
        list_files("s3://nowhere/in")


def test_a_file_that_vanished_is_named(bucket, tmp_path):
    bucket.put_object(Bucket="drop", Key="in/a.jsonl", Body=b"{}")
    (file,) = list_files("s3://drop/in")
    bucket.delete_object(Bucket="drop", Key="in/a.jsonl")

    with pytest.raises(SettingsError, match=r"s3://drop/in/a.jsonl is not there"):
        fetch(file, tmp_path / "copy")
