"""Raw files to rows: nothing is lost silently, every row has the hash of its bytes."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.curation.rows import BadRow, RawRow, UnreadableRow, check_readable, read_rows
from tasks.errors import DataError


def reasons(path: Path) -> list[str]:
    return [
        row.problem.reason if isinstance(row, UnreadableRow) else "ok" for row in read_rows(path)
    ]


def test_every_bad_line_comes_out_in_its_place_with_its_reason(tmp_path: Path):
    path = tmp_path / "raw.jsonl"
    path.write_bytes(
        b'{"a": 1}\n'
        b'{"a": \n'
        b"[1, 2]\n"
        b'{"a": "\xff"}\n'
        b'{"a": NaN}\n'
        b'{"a": "\\ud83d"}\n'
        b"\n"
        b'{"a": "\\ud83d\\ude00"}\r\n'
    )

    expected = ["ok", "not_json", "not_an_object", "not_utf8", "not_json", "not_utf8", "ok"]
    assert expected == reasons(path)


def test_the_source_row_is_the_hash_of_the_line_without_its_end(tmp_path: Path):
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b'{"a": 1}\r\n{"a": 1}')

    first, second = read_rows(path)

    assert hashlib.sha256(b'{"a": 1}').hexdigest() == first.source_row
    assert first.source_row == second.source_row
    assert ("raw-1", "raw-2") == (first.key, second.key)


def test_a_deeply_nested_line_is_refused_and_not_a_crash(tmp_path: Path):
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b'{"a": ' + b"[" * 100_000 + b"\n" + b'{"a": 1}\n')

    assert ["not_json", "ok"] == reasons(path)


def test_parquet_rows_are_hashed_as_canonical_json(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    rows = [{"b": "é", "a": [1, 2]}, {"b": None, "a": []}]
    pq.write_table(pa.Table.from_pylist(rows), path)

    first, second = read_rows(path)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    assert {"a": [1, 2], "b": "é"} == dict(first.fields)
    assert hashlib.sha256('{"a":[1,2],"b":"é"}'.encode()).hexdigest() == first.source_row


def test_a_parquet_row_that_json_cannot_hold_is_refused(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    pq.write_table(pa.Table.from_pylist([{"a": float("nan")}, {"a": 1.0}]), path)

    assert ["not_json", "ok"] == reasons(path)


def test_fields_are_read_with_tidy_line_ends_and_named_when_wrong():
    row = RawRow("raw-1", "hash", {"code": " x\r\n y \r", "blank": " ", "number": 3, "none": []})

    assert "x\n y" == row.text("code")
    with pytest.raises(BadRow, match="'number' is int, not text"):
        row.text("number")
    with pytest.raises(BadRow, match="'blank' is blank"):
        row.text("blank")
    with pytest.raises(BadRow, match="'absent' is NoneType, not a list"):
        row.items("absent")
    with pytest.raises(BadRow, match="'none' is an empty list"):
        row.items("none")


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n")
    fake = tmp_path / "fake.parquet"
    fake.write_text("not parquet")

    with pytest.raises(DataError, match=r"table.csv is not one of .jsonl, .parquet"):
        check_readable(table)
    with pytest.raises(DataError, match=r"fake.parquet cannot be read"):
        check_readable(fake)
