"""A withdrawn row is in no table but the quarantine, and stays out of every later set."""

import json
from pathlib import Path

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import CurationSettings, Source
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest, raw_files
from tasks.errors import SettingsError
from tasks.formats.exclusions import LIST_FILE, read_list, write_list
from tasks.store.files import sha256_bytes

SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=3)


def line(number: int) -> bytes:
    question = f"A shop has {number} bags and sells 2. How many are left?"
    answer = f"{number}-2=<<{number}-2={number - 2}>>{number - 2}\n#### {number - 2}"
    return json.dumps({"question": question, "answer": answer}).encode()


ROWS = [sha256_bytes(line(number)) for number in range(10, 30)]


def curated(
    base_model: Path, folder: Path, withdrawn: list[str], held_out_from: Path | None = None
) -> Path:
    """Curate the rows; the exclusion list is the last source, and has to act on the first."""
    for name in ("raw", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "set.jsonl").write_bytes(b"\n".join(line(number) for number in range(10, 30)))
    write_list(folder / "list.jsonl", withdrawn)
    sources = [Source(adapter="gsm8k", path=str(folder / "set.jsonl"))]
    if withdrawn:
        sources.append(Source(adapter="withdrawn", path=str(folder / "list.jsonl"), limit=1))
    ingest(sources, 0, folder / "raw")
    (folder / "list.jsonl").unlink()  # the set does not depend on where the list was
    curate(SETTINGS, folder / "raw", base_model, folder / "out", held_out_from)
    return folder / "out"


def rows_of(out: Path) -> set[str]:
    tables = ((PROBLEMS, Problem), (DEMONSTRATIONS, Demonstration), (HELD_OUT, Problem))
    return {row.source_row for name, kind in tables for row in read_table(out / name, kind)}


def test_withdrawn_rows_are_quarantined_under_their_reason_and_counted(base_model, tmp_path):
    gone = ROWS[3:5]

    out = curated(base_model, tmp_path, gone)

    assert set(ROWS) - set(gone) == rows_of(out)
    refused = [
        row for row in read_table(out / QUARANTINE, QuarantinedItem) if row.source_row in gone
    ]
    assert {("quarantined", "withdrawn")} == {(row.outcome.value, row.reason) for row in refused}
    account = json.loads((out / REPORT).read_bytes())["sources"]
    assert {"gsm8k"} == account.keys()
    assert 2 * len(gone) == account["gsm8k"]["quarantined"]["withdrawn"]  # problem, demonstration
    assert frozenset(gone) == read_list(out / LIST_FILE)


def test_no_list_leaves_nothing_out_and_no_trace(base_model, tmp_path):
    out = curated(base_model, tmp_path, [])

    assert set(ROWS) == rows_of(out)
    assert not (out / LIST_FILE).exists()


def test_a_later_set_keeps_out_what_its_held_out_suites_were_drawn_without(base_model, tmp_path):
    first = curated(base_model, tmp_path / "first", ROWS[3:5])

    second = curated(base_model, tmp_path / "second", ROWS[7:8], held_out_from=first)

    assert frozenset([*ROWS[3:5], ROWS[7]]) == read_list(second / LIST_FILE)
    assert not rows_of(second) & {*ROWS[3:5], ROWS[7]}


@pytest.mark.slow
def test_a_withdrawn_row_leaves_the_suite_that_is_reused(base_model, tmp_path):
    first = curated(base_model, tmp_path / "first", [])
    suite = [row.source_row for row in read_table(first / HELD_OUT, Problem)]

    second = curated(base_model, tmp_path / "second", suite[:1], held_out_from=first)

    assert suite[1:] == [row.source_row for row in read_table(second / HELD_OUT, Problem)]
    assert suite[0] not in rows_of(second)


def test_a_list_that_cannot_be_read_is_refused_before_any_work(tmp_path):
    source = Source(adapter="withdrawn", path=str(tmp_path / "list.jsonl"))
    (tmp_path / "raw").mkdir()

    with pytest.raises(SettingsError, match=r"sources\[0\].path: .*list.jsonl is no file"):
        ingest([source], 0, tmp_path / "raw")
    (tmp_path / "list.jsonl").write_text("my row\n")
    with pytest.raises(SettingsError, match=r"sources\[0\].path: .*line 1: b'my row' is not"):
        ingest([source], 0, tmp_path / "raw")
    assert [] == list((tmp_path / "raw").iterdir())


def test_the_list_is_part_of_the_chain(tmp_path):
    write_list(tmp_path / "list.jsonl", ROWS[:1])
    (tmp_path / "raw").mkdir()

    ingest([Source(adapter="withdrawn", path=str(tmp_path / "list.jsonl"))], 0, tmp_path / "raw")

    (listed,) = raw_files(tmp_path / "raw")
    kept = (tmp_path / "raw" / listed.uri).read_bytes()
    assert ("withdrawn", sha256_bytes(kept)) == (listed.adapter, listed.sha256)
