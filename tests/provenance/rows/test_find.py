"""What cannot be meant is refused with what can."""

import csv
import gzip
import io
import json
import shutil

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import PROBLEMS, Problem
from data_schemas.settings import CurationSettings, MergeSettings, PersonalData, Source
from data_schemas.sources import RAW_FILES
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.lineage.connection import connect
from tasks.provenance.rows import find
from tasks.provenance.rows.index import open_index
from tasks.store.files import canonical_json, sha256_bytes
from tests.provenance.rows.shop import line_of, question


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f" * 64, "no row of this store has this digest or text"),
        ("no one ever wrote this", "Paste a line of a raw file as it is"),
        ("bags", "give at least 8 characters"),
    ],
)
def test_a_row_that_is_not_there_is_refused(original, index, text, message):
    with pytest.raises(SettingsError, match=message):
        find.by_row(index, original.store, text)


def test_a_text_of_many_rows_means_all_of_them(original, index):
    asked = find.by_row(index, original.store, "bags and sells 2")

    assert 20 < len(asked.rows)


@pytest.mark.parametrize(
    ("ask", "name", "message"),
    [
        (find.by_source, "gsm9k", "--source 'gsm9k' is none of: gsm8k"),
        (find.by_verifier, "nope", "--verifier 'nope' is none of: final_answer"),
        (find.by_verifier, "final_answer@12345678", "no stage of this store ran code '12345678'"),
        (find.by_judge, "nope", "is none of: http, http://judge.example/v1, ternary"),
        (find.by_file, "nope.jsonl", "'nope.jsonl' was not ingested into this store"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(index, ask, name, message):
    with pytest.raises(SettingsError, match=message):
        ask(index, name)


def test_a_file_whose_rows_were_not_recorded_is_refused_instead_of_touching_nothing(shop):
    """A set that was curated before row places were recorded."""
    (shop.outside / "early.jsonl").write_text(f"{line_of(question(99))}\n")
    sources = (Source(adapter="gsm8k", path=str(shop.outside / "early.jsonl")),)
    recorded = shop.stage("ingest", MergeSettings(), raw="early")
    with recorded as record, record.output("raw") as out:
        ingest(sources, 0, out)
    with shop.stage("curate", MergeSettings()) as record:
        record.read("raw", shop.refs["early"])
        record.facts["rows"] = 1
        with record.output("curated") as out:
            (out / "report.json").write_text("{}")
    index = open_index(shop.store, shop.place)

    with pytest.raises(DataError, match="does not say which rows are its own"):
        find.by_file(index, "early.jsonl")


def test_a_checkpoint_is_found_by_its_digest_or_that_of_its_statement(original, index):
    release = original.refs["release of rl/one of merged"]

    for text in (release.digest, release.digest[:9], release.statement, release.statement[:9]):
        assert [release.statement] == find.model_statements(index.graph, text, "", "")
    for text in ("", "release", release.digest[:7], original.refs["old/curated"].digest):
        with pytest.raises(SettingsError, match="is no checkpoint of this store"):
            find.model_statements(index.graph, text, "", "")


def test_a_registered_model_is_found_by_its_statement(original, index, tmp_path, migrated):
    release = original.refs["release of rl/one of merged"]
    shutil.copy(migrated, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = connect(uri)
    client.create_registered_model("shop")
    for statement in (release.statement, "0" * 64):
        client.create_model_version("shop", release.uri, tags={"statement": statement})

    place = str(original.store)
    assert [release.statement] == find.model_statements(index.graph, "models:/shop/1", place, uri)
    with pytest.raises(TamperError, match=r"its statement .*0{64}.json cannot be read"):
        find.model_statements(index.graph, "models:/shop/2", place, uri)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "csv.gz"])
def test_a_person_whom_a_mask_hides_is_found_by_what_the_raw_rows_say(shop, tmp_path, suffix):
    told = {
        "question": 'Siti "Café", 0812-3456-7890, siti99@example.com, sells 3 of 9 bags. Left?',
        "answer": "9-3=<<9-3=6>>6\n#### 6",
    }
    rows = [told, question(77), question(78)]
    file = tmp_path / f"told.{suffix}"
    if suffix == "jsonl":
        file.write_text("".join(f"{line_of(row)}\n" for row in rows))
        digest = sha256_bytes(line_of(told).encode())
    else:
        buffer = io.StringIO()
        table = csv.DictWriter(buffer, fieldnames=list(told))
        table.writeheader()
        table.writerows(rows)
        text = buffer.getvalue().encode()
        file.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
        digest = sha256_bytes(canonical_json(told))
    settings = CurationSettings(
        sources=(Source(adapter="gsm8k", path=str(file)),),
        personal=PersonalData.MASK,
        max_prompt_tokens=400,
        max_response_tokens=400,
    )
    with shop.stage("ingest", settings, raw="told") as record, record.output("raw") as out:
        ingest(settings.sources, 0, out)
    with shop.stage("curate", settings) as record:
        raw, base = record.read("raw", shop.refs["told"]), record.read("base", shop.refs["base"])
        with record.output("curated") as out:
            record.facts |= curate(settings, raw, base, out)
            assert "[phone]" in "".join(
                one.prompt_text for one in read_table(out / PROBLEMS, Problem)
            )
    index = open_index(shop.store, tmp_path / "index")

    for asked in ("0812-3456-7890", "siti99@example.com"):
        assert [digest] == find.by_row(index, shop.store, asked).rows.to_pylist()
    assert [digest] == find.by_row(index, shop.store, 'Siti "Café", [phone]').rows.to_pylist()
    with pytest.raises(SettingsError, match="no row of this store"):
        find.by_row(index, shop.store, "0812-3456-7899")


@pytest.mark.parametrize("copied", ["", "inbox/feed.csv.gz"], ids=["outside", "copied"])
def test_a_line_of_a_csv_file_is_found_under_the_header_of_its_file(shop, tmp_path, copied):
    file = shop.outside / "feed.csv.gz"
    lines = ["question;answer;note", '"9 wallets; total?";"9 #### 54";', "1?;#### 2;other"]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    sources = (Source(adapter="gsm8k", path=str(file)),)
    recorded = shop.stage("ingest", MergeSettings(), raw="feed")
    with recorded as record, record.output("raw") as out:
        ingest(sources, 0, out)
        if copied:  # as a night copies the files of its inbox
            (out / copied).parent.mkdir()
            file.rename(out / copied)
            (entry,) = json.loads((out / RAW_FILES).read_text())
            (out / RAW_FILES).write_text(json.dumps([entry | {"uri": copied}]))
    settings = CurationSettings(held_out_per_suite=1)
    with shop.stage("curate", settings) as record:
        raw = record.read("raw", shop.refs["feed"])
        base = record.read("base", shop.refs["base"])
        with record.output("curated") as out:
            record.facts |= curate(settings, raw, base, out)
    index = open_index(shop.store, tmp_path / "index")

    selection = find.by_row(index, shop.store, lines[1])

    cells = {"question": "9 wallets; total?", "answer": "9 #### 54", "note": ""}
    assert [sha256_bytes(canonical_json(cells))] == selection.rows.to_pylist()
    with pytest.raises(SettingsError, match="A line of a CSV file is found while"):
        find.by_row(index, shop.store, "9 wallets; total?;9 #### 55;")
