"""Every row of a damaged file is used as it was written, or in a number; none is invented."""

import bz2
import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.arrow import write_table
from data_schemas.mappings import ColumnMapping
from data_schemas.rows import QUARANTINE, QuarantinedItem
from tasks.curation.adapters.table import read_file
from tasks.curation.damage import require_whole
from tasks.curation.rows import RawRow, check_readable, num_rows, read_rows, read_units
from tasks.errors import DataError
from tests import tiny_chain
from tests.processes import run_process

NUM_ROWS, PLACES = 120, 50
UNKNOWN = "damaged_file"
"""The reason that says itself that rows are lost in no number."""
NAMES = ("id", "title", "category")
Cells = tuple[str, str, str]


def cells_of(seed: int) -> list[Cells]:
    """Titles with commas, doubled quotes and marks of inches, as shops have them."""
    draw = random.Random(seed)
    titles = ("red shoe", 'pipe 5" long', "shoe, red", 'the "Big" one', "Schuh für Männer", "靴")
    return [
        (f"{number:05}", f"{draw.choice(titles)} {number}", draw.choice(("toys", "garden")))
        for number in range(NUM_ROWS)
    ]


def quoted(cell: str, delimiter: str) -> str:
    needs = any(mark in cell for mark in (delimiter, '"'))
    return '"' + cell.replace('"', '""') + '"' if needs else cell


def table(rows: list[Cells], delimiter: str, *, quotes: bool) -> list[bytes]:
    """Write lines; without quotes as a feed that knows none."""
    whole = [NAMES, *rows]
    write = quoted if quotes else lambda cell, _: cell
    return [f"{delimiter.join(write(one, delimiter) for one in row)}\n".encode() for row in whole]


def objects(rows: list[Cells]) -> list[bytes]:
    return [json.dumps(dict(zip(NAMES, row, strict=True))).encode() + b"\n" for row in rows]


ROWS = cells_of(0)
LINES = {
    "quoted.csv": table(ROWS, ",", quotes=True),
    "semicolons.csv": table(ROWS, ";", quotes=True),
    "quoted.tsv": table(ROWS, "\t", quotes=True),
    "feed.tsv": table([row for row in ROWS if '"' not in row[1]], "\t", quotes=False),
    "rows.jsonl": objects(ROWS),
}


def is_header(name: str) -> int:
    return 0 if "jsonl" in name else 1


def read(path: Path) -> tuple[set[Cells], Counter[str]]:
    """Return the rows that are used, and the number of those that are not by reason."""
    used: set[Cells] = set()
    reasons: Counter[str] = Counter()
    for row in read_rows(path):
        if isinstance(row, RawRow):
            cells = [str(row.fields.get(name)) for name in NAMES]
            used.add((cells[0], cells[1], cells[2]))
        else:
            reasons[row.problem.reason] += 1
    return used, reasons


def damaged_cells(lines: list[bytes], first: int) -> Iterator[tuple[list[bytes], int]]:
    """Put a quote, a byte that is no letter, or half of a quotation into a cell of one line."""
    draw = random.Random(1)
    for _ in range(PLACES):
        place = draw.randrange(first, len(lines))
        line = lines[place].rstrip(b"\n")
        at = draw.randrange(1, len(line))
        harm = draw.choice((b'"', b'""', b'"x', b"\xff", b"\\", b""))
        broken = line[:at] + harm + line[at + (harm == b"") :] + b"\n"
        yield [*lines[:place], broken, *lines[place + 1 :]], place


@pytest.mark.parametrize("name", LINES)
def test_a_damaged_cell_costs_few_rows_and_every_line_is_in_a_number(tmp_path: Path, name: str):
    path, header = tmp_path / name, is_header(name)
    path.write_bytes(b"".join(LINES[name]))
    sound, _ = read(path)
    assert len(sound) == len(LINES[name]) - header

    for lines, place in damaged_cells(LINES[name], header):
        path.write_bytes(b"".join(lines))
        used, reasons = read(path)

        assert len(used) + reasons.total() == len(lines) - header
        # At most the damaged row reads otherwise; no other is invented.
        assert len(used - sound) <= 1
        # A quote that opens a text may cost the lines up to the next one that has a quote.
        assert len(sound - used) <= 3, (lines[place], reasons)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        (("00010", '"shoe', "toys"), ("00040", 'pipe 5"', "toys")),
        (("00010", '"shoe', "toys"), ("00040", 'pipe 5"', "x", "toys")),
        (('"00010', "shoe", "toys"), ('00040"', "pipe", "toys")),
        (("00010", "shoe", '"toys'), ("00040", "pipe", 'toys"')),
    ],
)
def test_rows_between_two_marks_of_inches_are_no_text_of_one_cell(
    tmp_path: Path, delimiter: str, opens: tuple[str, ...], closes: tuple[str, ...]
):
    rows = [(f"{number:05}", f"shoe {number}", "toys") for number in range(60)]
    lines = [NAMES, *rows[:10], opens, *rows[11:40], closes, *rows[41:]]
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{delimiter.join(line)}\n" for line in lines))

    used, reasons = read(path)

    assert used >= {*rows[:10], *rows[11:40], *rows[41:]}
    assert 60 == len(used) + reasons.total()


def test_a_text_of_several_lines_with_commas_is_one_cell(tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_text('id,title,category\n1,"shoe, red\n\nsoft, light, warm\nand flat",toys\n')

    assert {("1", "shoe, red\n\nsoft, light, warm\nand flat", "toys")} == read(path)[0]


@pytest.mark.parametrize("name", LINES)
def test_of_a_file_that_is_cut_every_line_that_is_left_is_in_a_number(tmp_path: Path, name: str):
    path, header = tmp_path / name, is_header(name)
    path.write_bytes(b"".join(LINES[name]))
    sound, _ = read(path)
    whole = path.read_bytes()
    begin = len(LINES[name][0]) * header
    for length in range(begin, len(whole), (len(whole) - begin) // PLACES):
        path.write_bytes(whole[:length])
        used, reasons = read(path)

        # Lines may be cut in a letter or behind a cell: the last one reads otherwise or is refused.
        lines = whole[:length].split(b"\n")
        assert len(used) + reasons.total() == sum(map(bool, lines)) - header
        assert len(used - sound) <= 1
        assert reasons.total() <= 1


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_of_a_compressed_file_that_is_cut_or_damaged_no_row_is_lost_without_a_word(
    tmp_path: Path, pack
):
    plain = tmp_path / "whole.csv"
    plain.write_bytes(b"".join(LINES["quoted.csv"]))
    sound, _ = read(plain)
    path = tmp_path / ("rows.csv.gz" if pack is gzip.compress else "rows.csv.bz2")
    whole = pack(plain.read_bytes())
    for place in range(1, len(whole), len(whole) // PLACES + 1):
        flipped = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for payload in (whole[:place], flipped):
            path.write_bytes(payload)
            try:
                check_readable(path)
            except DataError:
                continue
            used, reasons = read(path)
            assert used == sound or reasons[UNKNOWN]


def test_of_a_damaged_parquet_file_every_row_is_in_a_number(tmp_path: Path):
    path = tmp_path / "rows.parquet"
    columns = zip(NAMES, zip(*ROWS, strict=True), strict=True)
    rows = pa.table({name: list(column) for name, column in columns})
    pq.write_table(rows, path, row_group_size=20, write_page_checksum=True)
    sound, _ = read(path)
    whole = path.read_bytes()
    counted = 0
    for place in range(4, len(whole), len(whole) // PLACES + 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            check_readable(path)
        except DataError:
            continue
        used, reasons = read(path)
        total = sum(map(num_rows, read_units(path)))
        assert total == NUM_ROWS or reasons[UNKNOWN]
        assert used <= sound
        counted += total == NUM_ROWS
    assert counted > PLACES // 4


def workbook(path: Path) -> bytes:
    book = openpyxl.Workbook()
    for cells in (NAMES, *ROWS):
        book.worksheets[0].append(cells)
    book.save(path)
    return path.read_bytes()


def test_a_workbook_that_is_cut_or_damaged_is_read_whole_or_refused(tmp_path: Path):
    path = tmp_path / "rows.xlsx"
    whole = workbook(path)
    sound, _ = read(path)
    assert NUM_ROWS == len(sound)
    refused = 0
    for place in range(1, len(whole), len(whole) // PLACES + 1):
        flipped = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for payload in (whole[:place], flipped):
            path.write_bytes(payload)
            try:
                check_readable(path)
            except DataError:
                refused += 1
                continue
            used, reasons = read(path)
            assert used == sound or (not used and reasons[UNKNOWN])
    assert refused > PLACES


SHELF = ColumnMapping.model_validate(
    {
        "name": "shelf",
        "domain": "general",
        "language": "en",
        "prompt": "What is {title}?",
        "response": "{category}",
    }
)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_rows_that_are_lost_are_counted_to_whoever_curates(tmp_path: Path, name: str, step: int):
    path, header = tmp_path / name, is_header(name)
    for lines, _ in islice(damaged_cells(LINES[name], header), 0, None, step):
        path.write_bytes(b"".join(lines))
        _, reasons = read(path)
        rows = list(read_file(SHELF.name, 0, path, SHELF))
        refused = [row for row in rows if isinstance(row, QuarantinedItem)]
        write_table(tmp_path / QUARANTINE, QuarantinedItem, refused)
        assert len(rows) == len(lines) - header
        if not reasons:
            require_whole(tmp_path, "objects/1")
            continue
        with pytest.raises(DataError, match=rf"^{reasons.total()} rows could not be read") as error:
            require_whole(tmp_path, "objects/1")
        for reason, count in reasons.items():
            assert f"{reason} {count}" in str(error.value)
        assert "objects/1" in str(error.value)


def test_a_row_that_an_adapter_refuses_is_not_lost_to_damage(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"title": "red shoe"}\n')
    (row,) = read_file(SHELF.name, 0, path, SHELF)
    assert isinstance(row, QuarantinedItem)
    write_table(tmp_path / QUARANTINE, QuarantinedItem, [row])

    require_whole(tmp_path, "objects/1")


@pytest.mark.slow
def test_a_curation_of_damaged_files_ends_with_1_and_a_set_of_what_is_left(tmp_path: Path):
    for name in LINES:
        path = tmp_path / name
        for lines, _ in damaged_cells(LINES[name], is_header(name)):
            path.write_bytes(b"".join(lines))
            if read(path)[1]:
                break
    book = tmp_path / "rows.xlsx"
    workbook(book)
    files = [*LINES, book.name]
    mapping = {
        "domain": "choice",
        "language": "en",
        "verifier": "choice",
        "prompt": "What is {id}, {title}?",
        "answer": {"correct": ["{category}"]},
        "options": ["toys", "garden"],
    }
    for place, _ in enumerate(files):
        own = tmp_path / f"{place}.yaml"
        own.write_text(json.dumps({"name": f"shelf_{place}", **mapping}))
    done = run_process(
        [
            *(Path(sys.executable).with_name("eachprompt"), "curate", "--store", "st"),
            *("--sources", ",".join(f"{place}.yaml={name}" for place, name in enumerate(files))),
        ],
        cwd=tmp_path,
        variables={"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )

    assert 1 == done.returncode, done.stderr[-2000:]
    last = done.stderr.strip().splitlines()[-1]
    assert re.match(r"DataError: \d+ rows could not be read", last), last
    (place,) = re.findall(r"is complete: (\S+)\. ", last)
    assert Path(place, "problems.parquet").is_file()


@pytest.mark.slow
def test_a_run_on_damaged_files_ends_with_1_behind_a_release_of_what_is_left(tmp_path: Path):
    tiny_chain.prepare(tmp_path)
    with (tmp_path / "rows.jsonl").open("a") as stream:
        stream.write('{"id": "cut", "prompt": "What is 1 pl\n')
    (tmp_path / "settings.json").write_text(tiny_chain.settings(tmp_path).model_dump_json())
    done = run_process(
        [
            *(Path(sys.executable).with_name("eachprompt"), "run"),
            *("--settings", "settings.json", "--store", "st"),
        ],
        cwd=tmp_path,
        variables={"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )

    assert 1 == done.returncode, done.stderr[-2000:]
    last = done.stderr.strip().splitlines()[-1]
    assert re.match(r"DataError: 1 rows could not be read: not_json 1\. .* It was used;", last), (
        last
    )
    assert "registered" in done.stdout


def test_a_parquet_file_that_is_cut_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [row[0] for row in ROWS]}), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // PLACES + 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"rows.parquet cannot be read"):
            check_readable(path)
