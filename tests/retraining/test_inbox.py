"""Listing a folder or an S3 prefix."""

import os

import pytest

from data_schemas.intake import FileStatus
from tasks.errors import SettingsError
from tasks.formats.mapping_files import parse_mapping
from tasks.retraining.inbox import list_files
from tasks.retraining.processed import load, select, settle


def keys(listing):
    return [file.key for file in listing.files]


def test_a_folder_is_listed_whole_and_by_name(tmp_path):
    for name in ("b.jsonl", "2026/a.jsonl", "2026/11/c.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")

    listing = list_files(str(tmp_path))

    assert ["2026/11/c.jsonl", "2026/a.jsonl", "b.jsonl"] == keys(listing)
    assert [2, 2, 2] == [file.bytes for file in listing.files]
    assert {} == listing.reasons


@pytest.mark.parametrize(
    "name",
    [
        *(".hidden.jsonl", ".staging/rows.jsonl", "_temporary/rows.jsonl", "_SUCCESS"),
        *("Thumbs.db", "desktop.ini", "rows.csv.md5", "ROWS.CSV.SHA256", "~$rows.xlsx"),
    ],
)
def test_hidden_files_checksums_and_what_systems_leave_are_not_data(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")

    listing = list_files(str(tmp_path))

    assert ([], {}) == (keys(listing), listing.reasons)


@pytest.mark.parametrize("suffix", [".tmp", ".part", ".crdownload", "~"])
def test_partial_uploads_are_left_with_the_reason(tmp_path, suffix):
    (tmp_path / f"rows.jsonl{suffix}").write_text("{}")
    (tmp_path / "empty.jsonl").touch()

    listing = list_files(str(tmp_path))

    assert [] == keys(listing)
    assert {
        f"rows.jsonl{suffix}": "it has the name of a partial upload",
        "empty.jsonl": "it is empty",
    } == listing.reasons


@pytest.mark.attack
def test_a_link_out_of_the_inbox_is_left_be_it_rows_or_a_mapping(tmp_path):
    """Whoever drops it may not read the file that it names; the night may."""
    inbox = tmp_path / "inbox"
    (inbox / "mapped").mkdir(parents=True)
    (tmp_path / "private.jsonl").write_text("secret")
    (inbox / "rows.jsonl").symlink_to("../private.jsonl")
    (inbox / "mapped" / "_mapping.yaml").symlink_to("../../private.jsonl")
    (inbox / "mapped" / "a.jsonl").write_text("{}")
    (inbox / "b.jsonl").write_text("{}")
    (inbox / "c.jsonl").symlink_to("b.jsonl")

    listing = list_files(str(inbox))

    out = "it is a link that leads out of the inbox; copy the file"
    assert ["b.jsonl", "c.jsonl"] == keys(listing)
    assert {
        "rows.jsonl": out,
        "mapped/a.jsonl": f"its mapping file cannot be used: {out}",
    } == listing.reasons


def test_the_parts_of_a_folder_are_ready_with_its_mark(tmp_path):
    for name in ("day1/part-00000.jsonl", "day2/part-00000.jsonl", "day2/_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")

    listing = list_files(str(tmp_path))

    assert ["day2/part-00000.jsonl"] == keys(listing)
    assert {"day1/part-00000.jsonl": "there is no _SUCCESS beside it yet"} == listing.reasons


def test_a_file_that_is_still_written_is_left_until_it_is_closed(tmp_path):
    with (tmp_path / "a.jsonl").open("w") as writer:
        writer.write("{}\n")
        writer.flush()
        listing = list_files(str(tmp_path))

    assert {"a.jsonl": "a process has it open for writing"} == listing.reasons
    assert ["a.jsonl"] == keys(list_files(str(tmp_path)))


@pytest.mark.parametrize("date", [1_000_000_000, 4_000_000_000])
def test_a_late_file_is_taken_whatever_its_date(tmp_path, date):
    inbox, store = tmp_path / "inbox", str(tmp_path / "store")
    inbox.mkdir()
    (inbox / "first.jsonl").write_text("{}")
    settle(store, str(inbox), list_files(str(inbox)).files, FileStatus.TRAINED, "e")
    late = inbox / "late.jsonl"
    late.write_text("{}")
    os.utime(late, (date, date))

    found = select(load(store, str(inbox)), list_files(str(inbox)).files)

    assert ["late.jsonl"] == [file.key for file in found]


def test_a_file_that_grew_is_new_again_and_one_that_was_touched_is_not(tmp_path):
    inbox, store = tmp_path / "inbox", str(tmp_path / "store")
    inbox.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (inbox / name).write_text("{}")
    settle(store, str(inbox), list_files(str(inbox)).files, FileStatus.TRAINED, "e")
    (inbox / "a.jsonl").write_text("{}\n{}")
    (inbox / "b.jsonl").touch()

    found = select(load(store, str(inbox)), list_files(str(inbox)).files)

    assert ["a.jsonl"] == [file.key for file in found]


def test_a_missing_folder_is_an_error_and_an_empty_one_is_not(tmp_path):
    assert () == list_files(str(tmp_path)).files
    with pytest.raises(SettingsError, match=r"nowhere is not a folder. Create it or set inbox"):
        list_files(str(tmp_path / "nowhere"))


@pytest.mark.slow
def test_a_prefix_is_listed_over_all_its_pages(bucket):
    for number in range(1003):  # a page holds 1000
        bucket.put_object(Bucket="bucket", Key=f"in/{number:04d}.jsonl", Body=b"{}")
    bucket.put_object(Bucket="bucket", Key="inside/not-ours.jsonl", Body=b"{}")
    bucket.put_object(Bucket="bucket", Key="in/folder/", Body=b"")
    bucket.put_object(Bucket="bucket", Key="in/.hidden.jsonl", Body=b"{}")

    files = list_files("s3://bucket/in").files

    assert 1003 == len(files)
    assert ("0000.jsonl", "s3://bucket/in/0000.jsonl") == (files[0].key, files[0].uri)
    assert list(files) == sorted(files, key=lambda file: file.key)


@pytest.mark.slow
def test_s3_files_are_new_once_and_again_when_their_content_changes(bucket, tmp_path):
    store = str(tmp_path)

    def new():
        return select(load(store, "s3://bucket/in"), list_files("s3://bucket/in").files)

    bucket.put_object(Bucket="bucket", Key="in/a.jsonl", Body=b"{}")
    settle(store, "s3://bucket/in", new(), FileStatus.TRAINED, "e")

    assert [] == new()
    bucket.put_object(Bucket="bucket", Key="in/a.jsonl", Body=b"{} ")
    assert ["a.jsonl"] == [file.key for file in new()]


def test_a_whole_bucket_can_be_the_inbox(bucket):
    bucket.put_object(Bucket="bucket", Key="a.jsonl", Body=b"rows")
    (file,) = list_files("s3://bucket").files

    assert ("a.jsonl", "s3://bucket/a.jsonl") == (file.key, file.uri)


def test_a_missing_bucket_says_which_setting_to_change(bucket):
    with pytest.raises(SettingsError, match=r"s3://nowhere/in is not there: .* Set inbox"):
        list_files("s3://nowhere/in")


MAPPING = """
name: shop
domain: choice
language: id
prompt: "Kategori: {name}?"
verifier: choice
answer: {correct: ["{cat}"]}
options: [sepatu, buku]
"""


def test_the_nearest_mapping_file_reads_the_files_of_its_folder_and_below(tmp_path):
    (tmp_path / "shop/2026").mkdir(parents=True)
    for name in ("a.jsonl", "shop/b.csv", "shop/2026/c.csv"):
        (tmp_path / name).write_text("rows")
    (tmp_path / "shop/_mapping.yaml").write_text(MAPPING)
    (tmp_path / "shop/2026/_mapping.json").write_text(
        parse_mapping(MAPPING.replace("name: shop", "name: year"), "m").model_dump_json()
    )

    listing = list_files(str(tmp_path))

    named = {file.key: file.mapping and file.mapping.name for file in listing.files}
    assert {"a.jsonl": None, "shop/b.csv": "shop", "shop/2026/c.csv": "year"} == named


def test_files_below_a_wrong_mapping_file_are_left_with_its_fault(tmp_path):
    (tmp_path / "shop").mkdir()
    for name in ("a.jsonl", "shop/b.csv"):
        (tmp_path / name).write_text("rows")
    (tmp_path / "shop/_mapping.yaml").write_text(MAPPING.replace("prompt:", "promt:"))

    listing = list_files(str(tmp_path))

    assert ["a.jsonl"] == keys(listing)
    assert ["shop/b.csv"] == list(listing.reasons)
    assert (
        "its mapping file cannot be used: mapping shop/_mapping.yaml: "
        in listing.reasons["shop/b.csv"]
    )
    assert (
        "promt is not a key of a mapping; did you mean `prompt`?" in listing.reasons["shop/b.csv"]
    )


def test_a_file_is_new_again_under_another_mapping_and_only_then(tmp_path):
    inbox, store = tmp_path / "in", str(tmp_path / "store")
    inbox.mkdir()
    (inbox / "a.csv").write_text("rows")
    (inbox / "_mapping.yaml").write_text(MAPPING)
    first = list_files(str(inbox)).files
    done = settle(store, str(inbox), first, FileStatus.SKIPPED, "night-1")

    assert [] == select(done, list_files(str(inbox)).files)
    (inbox / "_mapping.yaml").write_text(f"# a comment\n{MAPPING}")
    assert [] == select(done, list_files(str(inbox)).files)
    (inbox / "_mapping.yaml").write_text(MAPPING.replace("Kategori:", "Pilih kategori:"))
    assert ["a.csv"] == [file.key for file in select(done, list_files(str(inbox)).files)]


def test_a_mapping_file_in_s3_is_read_as_well(bucket):
    bucket.put_object(Bucket="bucket", Key="in/shop/_mapping.yaml", Body=MAPPING.encode())
    bucket.put_object(Bucket="bucket", Key="in/shop/a.csv", Body=b"name,cat")

    (file,) = list_files("s3://bucket/in").files

    assert ("shop/a.csv", "shop") == (file.key, file.mapping.name)
