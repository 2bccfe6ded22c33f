"""Raw files to rows: nothing is lost silently, every row has the hash of its bytes."""

import bz2
import codecs
import datetime
import gzip
import hashlib
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.rows import Problem
from tasks.curation.adapters.table import read_file
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
        b'{"a": 1, "a": 2}\n'
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


def test_a_map_whose_keys_are_no_texts_is_a_list_of_pairs(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    column = pa.array([[(1, "a"), (2, "b")]], pa.map_(pa.int32(), pa.string()))
    pq.write_table(pa.table({"names": column}), path)

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert {"names": [[1, "a"], [2, "b"]]} == dict(row.fields)


def test_a_cell_of_any_type_has_a_text_and_takes_no_other_cell_with_it(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    day = datetime.datetime(2026, 3, 1, 9, 30)
    columns = {
        "at": (pa.array([day, None], pa.timestamp("us")), "2026-03-01T09:30:00"),
        "at_zone": (pa.array([day, None], pa.timestamp("s", "UTC")), "2026-03-01T09:30:00+00:00"),
        "at_nano": (
            pa.array([1_000_000_001, None], pa.timestamp("ns")),
            "1970-01-01T00:00:01.000000001",
        ),
        "far": (pa.array([568_971_820_800, None], pa.timestamp("s")), "20000-01-01T00:00:00"),
        "day": (pa.array([day.date(), None]), "2026-03-01"),
        "time": (pa.array([1_500_000_000, None], pa.time64("ns")), "00:00:01.500000"),
        "lasts": (pa.array([datetime.timedelta(hours=-1), None]), "PT-3600S"),
        "price": (pa.array([Decimal("9.90"), None]), "9.90"),
        "rate": (pa.array([float("nan"), None]), "NaN"),
        "bound": (pa.array([float("-inf"), None]), "-Infinity"),
        "name": (pa.array(["Hüte".encode(), None]), "Hüte"),
        "image": (pa.array([{"bytes": b"\x89PNG"}, None]), {"bytes": "data:;base64,iVBORw=="}),
        "label": (pa.array(["a", None]).dictionary_encode(), "a"),
        "sizes": (pa.array([[("s", 1)], None], pa.map_(pa.string(), pa.int64())), {"s": 1}),
        "prices": (pa.array([[Decimal("0.5")], None]), ["0.5"]),
    }
    pq.write_table(pa.table({name: column for name, (column, _) in columns.items()}), path)

    first, second = read_rows(path)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    assert {name: text for name, (_, text) in columns.items()} == dict(first.fields)
    assert dict.fromkeys(columns) == dict(second.fields)


def test_a_cell_that_has_no_text_is_refused_where_it_is_used(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"b"], pa.binary()).buffers())
    pq.write_table(pa.table({"name": broken, "price": ["1", "2"]}), path)

    first, second = read_rows(path)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    assert ("1", "b") == (first.text("price"), second.text("name"))
    with pytest.raises(BadRow, match="'name': 'utf-8' codec can't decode byte 0xff"):
        first.text("name")


def test_rows_of_a_damaged_group_are_counted_and_those_of_others_read(tmp_path: Path):
    path = tmp_path / "raw.parquet"
    texts = [f"title {number:05}" for number in range(300)]
    pq.write_table(pa.table({"a": texts}), path, row_group_size=100, write_page_checksum=True)
    payload = bytearray(path.read_bytes())
    place = payload.index(b"title 00150") if b"title 00150" in payload else len(payload) // 2
    payload[place : place + 8] = b"\xff" * 8
    path.write_bytes(payload)

    assert [*["ok"] * 100, *["damaged_rows"] * 100, *["ok"] * 100] == reasons(path)


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
    table = tmp_path / "table.ods"
    table.write_text("a,b\n")
    fake = tmp_path / "fake.parquet"
    fake.write_text("not parquet")

    with pytest.raises(
        DataError, match=r"table.ods is not one of .jsonl, .jsonl.gz, .*, .parquet, .xlsx"
    ):
        check_readable(table)
    with pytest.raises(DataError, match=r"fake.parquet cannot be read"):
        check_readable(fake)
    for name, remedy in (
        ("a.json", r"let its name end in .jsonl; of one list make lines: jq -c '.\[\]'"),
        ("a.json.gz", "let its name end in .jsonl"),
        ("a.ods", "Save it as .xlsx"),
        ("a.csv.zip", "Unpack it first"),
    ):
        with pytest.raises(DataError, match=remedy):
            check_readable(tmp_path / name)


def test_a_row_that_does_not_fit_its_header_shows_it(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("# of 2026\nred,shoes\n")
    (row,) = read_rows(path)
    assert isinstance(row, UnreadableRow)
    assert row.problem.detail.endswith("the header, its file's first line, 1: '# of 2026'")

    path.write_text("title,kind\nred,shoes,\n")
    (row,) = read_rows(path)
    assert isinstance(row, UnreadableRow)
    assert row.problem.detail.endswith("Remove the delimiter at the ends of lines")


def test_a_number_that_is_none_costs_its_own_cell_in_lines_as_in_parquet(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"title": "red", "price": NaN}\n{"title": "blue", "price": -Infinity}\n')

    assert ["NaN", "-Infinity"] == [row.fields["price"] for row in read_rows(path)]


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
    (tmp_path / "a.ods").write_bytes(b"rows")

    assert ["unknown_suffix"] == reasons(tmp_path / "a.ods")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Behind the quote every line is a row by itself, so that the quote was the damage.
        ("q,a\n1,2\n" + '"3,4\n' + "5,6\n" * 8, ["ok", "bad", *["ok"] * 8]),
        # A text that was cut open is no row.
        ('q,a\n1,2\n"3,4\nno comma\n5,6\n', ["ok", *["bad"] * 3]),
        ('q\n1\n"2\n3\n', ["ok", "bad", "bad"]),
        ('q,a,b\n1,"say "hi"\nand go, now",3\n4,5,6\n', ["bad", "bad", "ok"]),
        # A feed that quotes nothing.
        ('q\ta\n1\t2\n"Big" shoe\t4\n5\t6\n', ["ok", "bad", "ok"]),
        ('q\ta\n1\t2\n"Big shoe\t4\n5\t6\n7" pipe"\t8\n', ["ok", "bad", "ok", "ok"]),
        ('q\ta\n"1\t2\n3"\t4\n', ["bad", "ok"]),
        # A text of several lines, and a quote in the middle of a cell.
        ('q,a\n"1\n1",2\n3,5" pipe\n', ["ok", "ok"]),
        ('q\ta\n"1\n1"\t2\n', ["ok"]),
    ],
)
def test_a_broken_quote_costs_its_line_and_no_text_that_was_cut_open_is_a_row(
    tmp_path: Path, table: str, expected: list[str]
):
    path = tmp_path / "raw.csv"
    path.write_text(table)

    assert [one.replace("bad", "unclosed_quote") for one in expected] == reasons(path)


def test_what_a_row_is_does_not_depend_on_the_case_of_a_suffix(tmp_path: Path):
    for name in ("A.CSV", "a.Tsv", "A.JSONL.GZ"):
        payload = b'{"a": 1}\n' if "JSON" in name else b"a\n1\n"
        (tmp_path / name).write_bytes(gzip.compress(payload) if "GZ" in name else payload)
        check_readable(tmp_path / name)
        assert ["ok"] == reasons(tmp_path / name)


def test_the_first_line_by_which_excel_names_its_delimiter_is_no_header(tmp_path: Path):
    path = tmp_path / "raw.csv"
    path.write_text("\ufeffsep=;\na;b,c\n1;2\n")

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert {"a": "1", "b,c": "2"} == row.fields


def test_a_blank_before_a_quote_is_none_of_its_cell(tmp_path: Path):
    path = tmp_path / "raw.csv"
    path.write_text('"title", "kind"\n"red, new", "shoes, big"\n"blue", "toys"\n')

    first, second = read_rows(path)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    assert {"title": "red, new", "kind": "shoes, big"} == first.fields
    assert {"title": "blue", "kind": "toys"} == second.fields


def test_quotes_that_a_backslash_escapes_say_how_to_export_them(tmp_path: Path):
    path = tmp_path / "raw.csv"
    path.write_text('title,kind\n"15\\" wide, red",shoes\nblue,toys\n')

    first, second = read_rows(path)

    assert isinstance(first, UnreadableRow)
    assert "doubled quotes" in first.problem.detail
    assert isinstance(second, RawRow)


@pytest.mark.parametrize(
    ("name", "payload", "message"),
    [
        ("a.csv", gzip.compress(b"a\n1\n", mtime=0), "is compressed: let its name end in .gz"),
        ("a.csv", b"PK\x03\x04rest", "is a workbook or another archive: let its name end in"),
        ("a.jsonl", b'[{"a": 1}, {"a": 2}]', "is one JSON list .* jq -c '.\\[\\]'"),
        ("a.jsonl", b'[{"a": 1}]\n[{"a": 2}]\n', "is a JSON list a line .* jq -c '{messages: .}'"),
        ("a.jsonl", b'{"a": 1},\n{"a": 2}\n', "is of objects that commas divide.* sed"),
        ("a.jsonl", b'{\n "a": 1\n}\n', "is one JSON object over several lines.* jq -c [.]"),
        ("a.jsonl", b'{"a": 1}{"a": 2}', "is of objects that no line end divides.* jq -c [.]"),
        ("a.jsonl", b"a,b\n1,2\n", "no line begins an object. A table's name ends in .csv"),
        ("a.csv", b'{"a": 1}\n{"a": 2}\n', "is JSON and no table: let its name end in .jsonl"),
        ("a.csv", b"<table><tr><td>a</td></tr></table>", "is a web page or XML"),
        ("a.tsv", b'<rss version="2.0"><channel></channel></rss>', "is a web page or XML"),
        ("a.csv", b"%PDF-1.7\n", "is a PDF document"),
        ("a.csv", b"\xfd7zXZ\x00\x00", "is compressed with xz. Unpack it first"),
        ("a.parquet", b"ARROW1\0\0", "is a file of Arrow. Write it as Parquet"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a workbook with a password"),
    ],
)
def test_a_file_in_another_form_than_its_name_says_is_named_with_its_remedy(
    tmp_path: Path, name: str, payload: bytes, message: str
):
    (tmp_path / name).write_bytes(payload)

    with pytest.raises(DataError, match=message):
        check_readable(tmp_path / name)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
        ("iso2022_jp", "ISO-2022-JP"),
        ("iso2022_kr", "ISO-2022-KR"),
    ],
)
def test_a_file_of_another_encoding_is_named_with_the_command_that_converts_it(
    tmp_path: Path, encoding: str, name: str
):
    path = tmp_path / "rows.csv"
    title = {"iso2022_jp": "赤い靴", "iso2022_kr": "빨간 신발"}.get(encoding, "Schöne Hüte")
    path.write_text(f"title,price\n{title},3\n" * 3, encoding=encoding)

    with pytest.raises(
        DataError, match=f"rows.csv is {name}. Convert it: iconv -f {name} -t UTF-8"
    ):
        check_readable(path)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "Żółte buty w kratkę"),
        ("cp1251", "Красные туфли"),
        ("iso8859_2", "Źrebię, łąka"),
        ("cp874", "รองเท้าวิ่งผู้ชาย สีดำ"),
        ("big5", "男用慢跑運動鞋 出貨很快"),
        ("gb18030", "男士跑步鞋 发货很快"),
        ("cp949", "남성용 운동화 가죽 샌들"),
        ("cp932", "男性用ランニングシューズ"),
    ],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl"])
def test_an_encoding_that_no_byte_tells_is_named_with_a_line_of_it_and_no_command(
    tmp_path: Path, encoding: str, text: str, name: str
):
    path = tmp_path / name
    path.write_text(f'{{"title": "{text}"}}\n' * 3, encoding=encoding)

    with pytest.raises(
        DataError, match=r"rows.* is not UTF-8, and no byte says what it is"
    ) as error:
        check_readable(path)

    assert f"{encoding} " in str(error.value)
    assert text in str(error.value)
    assert "iconv" not in str(error.value)


@pytest.mark.parametrize(
    ("page", "title"), [("cp1251", "красный чайник"), ("cp1250", "żółte buty"), ("cp437", "São")]
)
def test_letters_that_were_encoded_twice_are_named_whatever_the_code_page(
    tmp_path: Path, page: str, title: str
):
    path = tmp_path / "rows.csv"
    path.write_text(f"title\n{title.encode().decode(page)}\n")

    with pytest.raises(DataError, match=f"encoded twice: .* was {title!r}"):
        check_readable(path)
    path.write_text(f"title\n{title}\n")
    check_readable(path)


def test_an_object_with_braces_in_its_text_is_one_object(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": "} {", "b": '}{"'}) + "\n<title>,<kind>\n")

    check_readable(path)


def test_letters_that_were_encoded_twice_are_named_with_what_they_were(tmp_path: Path):
    path = tmp_path / "rows.csv"
    titles = ["tênis São Paulo", "calção verão", "pão de açúcar", "plain shoe"]
    path.write_text("title\n" + "".join(f"{one.encode().decode('cp1252')}\n" for one in titles[:2]))

    with pytest.raises(DataError, match="encoded twice: 'tÃªnis SÃ£o Paulo' was 'tênis São Paulo'"):
        check_readable(path)
    path.write_text("\n".join(["title", *titles, "Âncora", "50 °C", "NÃO à vista"]))
    check_readable(path)


@pytest.mark.parametrize(
    ("magic", "message"),
    [
        (b"PAR1\x15\x04", "let its name end in .parquet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Save it as .xlsx"),
        (b"SQLite format 3\0", "is a database. Export a table of it as CSV"),
        (b"Rar!\x1a\x07\x01\0", "no text, as its first line has bytes that are no letters"),
        (b"\x80\x04\x95\0\0cpandas", "no text, as its first line has bytes"),
    ],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_file_that_is_no_text_is_not_said_to_have_no_row(
    tmp_path: Path, name: str, magic: bytes, message: str
):
    path = tmp_path / name
    path.write_bytes(magic + b"\0\1\2" * 99)

    with pytest.raises(DataError, match=message):
        check_readable(path)
    assert ["damaged_file"] == reasons(path)


def test_a_few_broken_bytes_are_damaged_rows_of_a_file_in_utf_8(tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_bytes("title\nHüte\n".encode() + b"H\xfcte\n" * 9)

    check_readable(path)
    assert ["ok", *["not_utf8"] * 9] == reasons(path)


def test_a_line_of_many_broken_bytes_costs_itself_and_not_its_file(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 150 + b'{"a": "\xfc\xfc\xfc\xfc\xfc"}\n')

    check_readable(path)
    assert {"ok": 150, "not_utf8": 1} == Counter(reasons(path))


def test_an_object_that_is_cut_after_its_brace_is_one_damaged_row(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{\n")

    check_readable(path)
    assert ["not_json"] == reasons(path)


@pytest.mark.parametrize("separator", ["", "sep=,\n"])
def test_blank_lines_in_front_of_a_header_are_none(tmp_path: Path, separator: str):
    path = tmp_path / "rows.csv"
    path.write_text(f"\ufeff\n{separator}\n \ntitle,price\nshoe,1\n")

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert {"title": "shoe", "price": "1"} == dict(row.fields)


@pytest.mark.parametrize("header", ['"id,title', 'id,"title', 'id\t"title'])
def test_no_row_is_lost_without_a_word_behind_a_header_with_an_open_quote(
    tmp_path: Path, header: str
):
    path = tmp_path / "rows.csv"
    divider = "\t" if "\t" in header else ","
    path.write_text("\n".join([header, *(f"{n}{divider}shoe {n}" for n in range(20))]) + "\n")

    assert 21 == len(reasons(path))


def test_bars_divide_cells_unless_they_are_part_of_a_name(tmp_path: Path):
    bars, commas = tmp_path / "bars.csv", tmp_path / "commas.csv"
    bars.write_text("title|price\nred, round|1\n")
    commas.write_text("size|colour|cut,price\nL|red|slim,1\n")

    (first,), (second,) = read_rows(bars), read_rows(commas)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    assert {"title": "red, round", "price": "1"} == dict(first.fields)
    assert {"size|colour|cut": "L|red|slim", "price": "1"} == dict(second.fields)


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


def test_a_key_that_a_column_store_fills_with_null_is_in_no_gold(tmp_path: Path):
    """A column of {"city": ...} and {"day": ...} has both keys in every row."""
    rows = [
        {"domain": "maths", "language": "en", "verifier": "final_answer", "prompt": f"{n} + 1?"}
        | {"answer": {"value": f"{n + 1}"} | ({"unit": "m"} if n else {})}
        for n in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    golds = [
        [
            item.record.answer
            for row in read_file("prompt_jsonl", 0, tmp_path / name)
            if isinstance(row, list)
            for item in row
            if isinstance(item.record, Problem)
        ]
        for name in ("a.parquet", "a.jsonl")
    ]

    assert ['{"value":"1"}', '{"unit":"m","value":"2"}'] == golds[0]
    assert golds[1] == golds[0]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_between_the_rows_is_no_row(tmp_path: Path, mark: str):
    path = tmp_path / "two.csv"
    path.write_text(f"id,title\n1,shoe\n{mark}id,title\n2,boot\n", encoding="utf-8-sig")

    first, header, second = read_rows(path)

    assert isinstance(header, UnreadableRow)
    assert "repeated_header" == header.problem.reason
    assert [{"id": "1", "title": "shoe"}, {"id": "2", "title": "boot"}] == [
        dict(row.fields) for row in (first, second) if isinstance(row, RawRow)
    ]


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl"])
@pytest.mark.parametrize(
    "start", ["<!DOCTYPE html><html>", "\n<HTML lang=en>", "<?xml version='1'?>"]
)
def test_a_page_in_place_of_a_table_is_named_and_is_not_a_table_without_rows(
    tmp_path: Path, name: str, start: str
):
    (tmp_path / name).write_text(f"{start}Not found\n")

    with pytest.raises(DataError, match="a web page or XML"):
        check_readable(tmp_path / name)
    (row,) = read_rows(tmp_path / name)
    assert isinstance(row, UnreadableRow)
    assert "damaged_file" == row.problem.reason
