"""Raw files to rows: nothing is lost silently, every row has the hash of its bytes."""

import bz2
import codecs
import gzip
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


def test_single_precision_is_the_decimal_that_it_was_written_from(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"a": pa.array([0.1, 1.5], pa.float32())}), path)

    rows = [row for row in read_rows(path) if isinstance(row, RawRow)]

    assert [{"a": 0.1}, {"a": 1.5}] == [dict(row.fields) for row in rows]


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
    with pytest.raises(BadRow, match="'absent' is not among "):
        row.items("absent")
    with pytest.raises(BadRow, match="'none' is an empty list"):
        row.items("none")


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path):
    table = tmp_path / "table.xlsx"
    table.write_text("a,b\n")
    fake = tmp_path / "fake.parquet"
    fake.write_text("not parquet")

    with pytest.raises(
        DataError, match=r"table.xlsx is not one of .jsonl, .jsonl.gz, .*, .parquet"
    ):
        check_readable(table)
    with pytest.raises(DataError, match=r"fake.parquet cannot be read"):
        check_readable(fake)


LINES = b'{"a": 1}\n{"a": \n{"a": "\xc3\xa9"}\n'


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.Codec("zstd").compress(data, asbytes=True)),
    ],
)
def test_compressed_rows_are_those_of_the_plain_file(tmp_path: Path, suffix, pack):
    plain, packed = tmp_path / "a.jsonl", tmp_path / f"a.jsonl{suffix}"
    plain.write_bytes(LINES)
    packed.write_bytes(pack(LINES))
    check_readable(packed)

    rows = [(row.source_row, getattr(row, "fields", None)) for row in read_rows(packed)]

    assert [(row.source_row, getattr(row, "fields", None)) for row in read_rows(plain)] == rows
    assert 3 == len(rows)


def test_csv_rows_have_the_names_of_the_header(tmp_path: Path):
    path = tmp_path / "a.csv.gz"
    table = b'\xef\xbb\xbfid,text\r\n1,"two\nlines, one cell"\r\n2\r\n3,x,y\r\n4,\xff\r\n'
    path.write_bytes(gzip.compress(table))

    first, *others = read_rows(path)

    assert {"id": "1", "text": "two\nlines, one cell"} == first.fields
    assert ["malformed_csv", "malformed_csv", "not_utf8"] == [row.problem.reason for row in others]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz"])
def test_a_damaged_file_yields_the_rows_before_the_damage_and_one_refusal(tmp_path: Path, name):
    path = tmp_path / name
    head, row = (b"id\n", b"%d\n") if ".csv" in name else (b"", b'{"a": %d}\n')
    rows = b"".join(row % (number * 7919 % 100_003) for number in range(100_000))
    whole = gzip.compress(head + rows)
    path.write_bytes(whole[: len(whole) // 2])

    *good, last = reasons(path)

    assert "damaged_file" == last
    assert {"ok"} == set(good)
    assert 10_000 < len(good) < 100_000


def test_a_file_that_is_not_what_its_name_says_is_one_refusal(tmp_path: Path):
    for name in ("a.jsonl.gz", "a.parquet", "a.csv.zst"):
        (tmp_path / name).write_bytes(b"neither compressed nor parquet")
        assert ["damaged_file"] == reasons(tmp_path / name)
        with pytest.raises(DataError, match="cannot be read"):
            check_readable(tmp_path / name)
    (tmp_path / "a.xlsx").write_bytes(b"rows")

    assert ["unknown_suffix"] == reasons(tmp_path / "a.xlsx")


def test_every_line_behind_a_quote_that_is_never_closed_is_counted(tmp_path: Path):
    path = tmp_path / "raw.csv"
    path.write_text("q,a\n1,2\n" + '"3,4\n' + "5,6\n" * 8)

    assert ["ok", *["unclosed_quote"] * 9] == reasons(path)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("cp1252", "CP1252"),
    ],
)
def test_a_file_of_another_encoding_is_named_with_the_command_that_converts_it(
    tmp_path: Path, encoding: str, name: str
):
    path = tmp_path / "rows.csv"
    path.write_text("title,price\nSchöne Hüte für Männer,3\n", encoding=encoding)

    with pytest.raises(
        DataError, match=f"rows.csv is {name}. Convert it: iconv -f {name} -t UTF-8"
    ):
        check_readable(path)


def test_a_few_broken_bytes_are_damaged_rows_of_a_file_in_utf_8(tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_bytes("title\nHüte\n".encode() + b"H\xfcte\n" * 9)

    check_readable(path)
    assert ["ok", *["not_utf8"] * 9] == reasons(path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_cells_may_be_divided_by_semicolons_and_tabs(tmp_path: Path, delimiter: str, pack):
    path = tmp_path / ("rows.csv" if pack is bytes else "rows.csv.gz")
    text = f'"title, long"{delimiter}price\n"red, round"{delimiter}"1,50"\n'
    path.write_bytes(pack(text.encode()))

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert {"title, long": "red, round", "price": "1,50"} == dict(row.fields)


def test_an_object_with_equal_keys_is_not_read_as_its_first_or_last(tmp_path: Path):
    path = tmp_path / "raw.jsonl"
    path.write_text('{"a": 1, "a": 2}\n{"b": {"c": 1, "c": 1}}\n{"a": {"a": 1}}\n')

    assert ["not_json", "not_json", "ok"] == reasons(path)


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_the_mark_that_windows_puts_before_a_text_is_no_part_of_the_first_row(
    tmp_path: Path, suffix, pack
):
    plain, marked = tmp_path / f"a.jsonl{suffix}", tmp_path / f"b.jsonl{suffix}"
    plain.write_bytes(pack(LINES))
    marked.write_bytes(pack(codecs.BOM_UTF8 + LINES))
    check_readable(marked)

    found = [(row.source_row, getattr(row, "fields", None)) for row in read_rows(marked)]

    assert [(row.source_row, getattr(row, "fields", None)) for row in read_rows(plain)] == found
    assert {"a": 1} == found[0][1]


def test_a_second_mark_is_damage_and_a_file_of_a_mark_alone_has_no_row(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        2 * codecs.BOM_UTF8 + b'{"a": 1}\n' + codecs.BOM_UTF8 + b'{"a": 1}\n{"a": 1}\n'
    )
    assert ["not_json", "not_json", "ok"] == reasons(path)

    path.write_bytes(codecs.BOM_UTF8 + b"\n")
    assert [] == reasons(path)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("a.csv", b"q,answer,answer\n1,2,3\n4,5,6\n"),
        ("a.csv", b'\xef\xbb\xbf"answer";q;"answer"\r\n1;2;3\r\n'),
        ("a.csv.gz", gzip.compress(b'"two\nlines",answer,answer\n1,2,3\n', mtime=0)),
        ("a.parquet", b""),
    ],
)
def test_a_table_with_two_columns_of_one_name_is_refused_with_what_to_do(
    tmp_path: Path, name: str, table: bytes
):
    path = tmp_path / name
    path.write_bytes(table)
    if name == "a.parquet":
        rows = pa.table([[1], [2]], names=["answer", "answer"])
        pq.write_table(rows, path)

    assert ["repeated_column"] == reasons(path)
    with pytest.raises(DataError) as refused:
        check_readable(path)
    assert str(refused.value) == (
        f"{path} has two columns named 'answer', of which a row can have one. Rename or remove one"
    )


def test_columns_without_a_name_may_repeat_because_nothing_reads_them(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("q,answer,,\n1,2,,\n")

    check_readable(path)

    (row,) = read_rows(path)
    assert isinstance(row, RawRow)
    assert ("1", "2") == (row.text("q"), row.text("answer"))
