"""Workbooks: a cell is what a spreadsheet shows, and what it cannot show is no value."""

import datetime
from pathlib import Path

import pytest

from tasks.curation.rows import BadRow, RawRow, check_readable, read_rows
from tasks.errors import DataError

openpyxl = pytest.importorskip("openpyxl")


def test_cells_keep_their_kind_and_blank_rows_are_none(tmp_path: Path):
    path = tmp_path / "Shop.XLSX"
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([])
    sheet.append(["id", "price", "at", "day", "sold", "note"])
    day = datetime.datetime(2026, 3, 1)
    sheet.append(["00001", 9.5, day + datetime.timedelta(hours=9.5), day, True, None])
    sheet.append([])
    sheet.append([2, 3])
    book.create_sheet("hidden").append(["other"])
    book["hidden"].sheet_state = "hidden"
    book.save(path)

    check_readable(path)
    first, second = read_rows(path)

    assert isinstance(first, RawRow)
    assert isinstance(second, RawRow)
    expected = {"id": "00001", "price": 9.5, "at": "2026-03-01T09:30:00", "day": "2026-03-01"}
    assert expected | {"sold": True, "note": ""} == first.fields
    assert (2, 3, "") == tuple(second.fields[name] for name in ("id", "price", "note"))


def test_a_number_that_is_shown_with_leading_zeros_is_the_key_that_is_shown(tmp_path: Path):
    path = tmp_path / "shop.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["sku", "stock"])
    book.active.append([1, 1])
    book.active["A2"].number_format = "00000"
    book.active["B2"].number_format = "0"
    book.save(path)

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert ("00001", 1) == (row.fields["sku"], row.fields["stock"])


def test_a_share_is_the_per_cent_that_is_shown_and_a_sum_has_no_digits_that_are_not(tmp_path: Path):
    path = tmp_path / "shop.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["share", "sum"])
    for place, share in enumerate((0.125, 1, 0.07, 0.0), start=2):
        book.active.append([share, 0.1 + 0.2])
        book.active[f"A{place}"].number_format = "0.0%"
    book.save(path)

    rows = list(read_rows(path))

    assert ["12.5%", "100%", "7%", "0%"] == [row.fields["share"] for row in rows]
    assert {0.3} == {row.fields["sum"] for row in rows}


def test_signs_that_xml_has_not_are_read_and_not_shown_by_their_numbers(tmp_path: Path):
    path = tmp_path / "shop.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["title"])
    book.active.append(["red_x000D_\nshoe_x005F_x000D_"])
    book.save(path)

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert "red\nshoe_x000D_" == row.text("title")


def test_an_error_and_a_formula_without_result_are_refused_where_they_are_used(tmp_path: Path):
    path = tmp_path / "shop.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["title", "price", "total"])
    book.active.append(["red shoe", "#N/A", "=1+1"])
    book.save(path)

    (row,) = read_rows(path)

    assert isinstance(row, RawRow)
    assert "red shoe" == row.text("title")
    with pytest.raises(BadRow, match="'price': the spreadsheet shows #N/A"):
        row.text("price")
    with pytest.raises(BadRow, match="'total': the formula =1"):
        row.text("total")


def test_several_sheets_and_damage_are_refused_by_name(tmp_path: Path):
    path = tmp_path / "shop.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["title"])
    book.create_sheet("reviews").append(["text"])
    book.save(path)

    with pytest.raises(DataError, match=r"2 visible sheets with rows \(Sheet, reviews\)"):
        check_readable(path)
    for length in (0, 100, len(path.read_bytes()) - 30):
        (tmp_path / "cut.xlsx").write_bytes(path.read_bytes()[:length])
        with pytest.raises(DataError, match=r"cut.xlsx is no workbook that can be read"):
            check_readable(tmp_path / "cut.xlsx")
