"""New files: copied as they came, and what curation makes of their rows is counted."""

import json

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.intake import CurationCounts, Intake
from data_schemas.rows import ItemKind, Outcome, Problem, QuarantinedItem
from tasks.curation.ingest import check_raw_files
from tasks.formats.content import content_key, content_keys
from tasks.retraining.inbox import list_files
from tasks.retraining.intake import adapter_of, count, take_in
from tasks.store.files import sha256_bytes
from tests.records import problem_of


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def problem(question, number=0):
    return problem_of(question, '{"value":"7"}', id=f"p{number}", source="prompt_jsonl")


def test_the_copies_are_the_raw_files_of_curation(inbox, out):
    (inbox / "a.jsonl").write_text("rows")
    listing = list_files(str(inbox))

    report, taken, _ = take_in(str(inbox), listing.files, listing.reasons, out)
    (inbox / "a.jsonl").unlink()
    (raw,) = check_raw_files(out)

    digest = sha256_bytes(b"rows")
    assert [file.model_copy(update={"sha256": digest}) for file in listing.files] == taken
    assert ("prompt_jsonl", f"inbox/{digest[:8]}-a.jsonl") == (raw.adapter, raw.uri)
    assert "rows" == (out / raw.uri).read_text()
    assert report.files[0].sha256 == raw.sha256 == sha256_bytes(b"rows")
    assert report == Intake.model_validate(json.loads((out / "intake.json").read_bytes()))


def test_a_mapping_beside_a_file_or_of_the_project_is_part_of_the_raw_files(inbox, out):
    (inbox / "adapter=product_matching").mkdir()
    (inbox / "shop").mkdir()
    (inbox / "adapter=product_matching" / "a.jsonl").write_text("rows")
    (inbox / "shop" / "b.jsonl").write_text("rows")
    text = "{name: shop, domain: maths, language: en, prompt: '{q}', response: '{a}'}"
    (inbox / "shop" / "_mapping.yaml").write_text(text)
    listing = list_files(str(inbox))

    report, *_ = take_in(str(inbox), listing.files, listing.reasons, out)

    assert ["product_matching", "shop"] == [file.adapter for file in report.files]
    assert ["product_matching", "shop"] == [
        file.mapping.name for file in check_raw_files(out) if file.mapping
    ]


def test_the_same_files_make_the_same_object(inbox, tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (inbox / name).write_text(name)
    written = []
    for number in range(2):
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        (inbox / "a.jsonl").touch()
        listing = list_files(str(inbox))
        take_in(str(inbox), listing.files, listing.reasons, folder)
        written.append({path.name: path.read_bytes() for path in folder.rglob("*.json*")})

    assert written[0] == written[1]


def test_files_of_one_name_from_two_folders_are_distinguished(inbox, out):
    for folder in ("x", "y"):
        (inbox / folder).mkdir()
        (inbox / folder / "a.jsonl").write_text(folder)
    listing = list_files(str(inbox))

    report, *_ = take_in(str(inbox), listing.files, {}, out)

    assert [f"inbox/{sha256_bytes(text)[:8]}-a.jsonl" for text in (b"x", b"y")] == [
        file.copy_name for file in report.files
    ]


def test_one_content_in_two_folders_is_copied_twice(inbox, out):
    for folder in ("x", "y"):
        (inbox / folder).mkdir()
        (inbox / folder / "a.jsonl").write_text("rows")
    listing = list_files(str(inbox))

    report, *_ = take_in(str(inbox), listing.files, {}, out)

    assert 2 == len({file.copy_name for file in report.files})


def test_a_file_that_vanished_or_changed_since_it_was_listed_is_left(inbox, out):
    for name in ("gone.jsonl", "grown.jsonl", "whole.jsonl"):
        (inbox / name).write_text("rows")
    listing = list_files(str(inbox))
    (inbox / "gone.jsonl").unlink()
    (inbox / "grown.jsonl").write_text("more rows")

    report, taken, _ = take_in(str(inbox), listing.files, {"b.part": "it is partial"}, out)

    assert ["whole.jsonl"] == [file.key for file in taken]
    assert {"b.part", "gone.jsonl", "grown.jsonl"} == report.left.keys()
    assert f"it cannot be read: {inbox}/gone.jsonl is gone" == report.left["gone.jsonl"]
    assert "it changed while it was copied" == report.left["grown.jsonl"]
    assert [f"{sha256_bytes(b'rows')[:8]}-whole.jsonl"] == [
        path.name for path in (out / "inbox").iterdir()
    ]


def test_an_s3_file_that_vanished_is_left(bucket, out):
    bucket.put_object(Bucket="bucket", Key="in/a.jsonl", Body=b"{}")
    listing = list_files("s3://bucket/in")
    bucket.delete_object(Bucket="bucket", Key="in/a.jsonl")

    report, taken, _ = take_in("s3://bucket/in", listing.files, {}, out)

    assert [] == taken
    assert "s3://bucket/in/a.jsonl is gone" in report.left["a.jsonl"]


@pytest.mark.parametrize(
    ("key", "adapter"),
    [
        ("a.jsonl", "prompt_jsonl"),
        ("2026/a.jsonl", "prompt_jsonl"),
        ("adapter=ae110k/a.jsonl", "ae110k"),
        ("2026/adapter=prdect_id/11/a.csv.gz", "prdect_id"),
        ("adapter=ae110k", "prompt_jsonl"),
    ],
)
def test_a_folder_names_the_adapter_of_its_files(key, adapter):
    assert adapter == adapter_of(key)


def test_problems_are_fresh_unless_the_released_model_knows_their_prompt(tmp_path):
    bad = QuarantinedItem(
        stage="read",
        outcome=Outcome.QUARANTINED,
        kind=ItemKind.ROW,
        source="prompt_jsonl",
        key="k",
        reason="not_json",
        source_row="0" * 64,
    )
    rows = [problem("What is 3 + 4?", 1), problem("new", 2), problem("  NEW ", 3)]
    write_table(tmp_path / "problems.parquet", Problem, rows)
    write_table(tmp_path / "quarantine.parquet", QuarantinedItem, [bad, bad])
    (tmp_path / "report.json").write_text('{"totals": {"rows": 5}}')

    counted = count(
        tmp_path,
        read_table(tmp_path / "problems.parquet", Problem),
        content_keys([problem("what is  3 + 4?")]),
    )

    assert CurationCounts(rows=5, problems=3, fresh=1, refused={"not_json": 2}) == counted


def test_width_case_and_blanks_make_no_new_prompt():
    wide = "\N{FULLWIDTH LATIN CAPITAL LETTER A}BC  d"
    assert content_key(problem(wide)) == content_key(problem("abc D"))
    assert content_key(problem("abc d")) != content_key(problem("abc e"))
