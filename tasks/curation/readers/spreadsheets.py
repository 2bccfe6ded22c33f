"""Workbooks of spreadsheets: one visible sheet, whose first row that is not blank is the header.

A number is a number and a date a date; one that is shown with leading zeros (`00000`) is a key, and
the text that is shown; one that is shown in per cent is that (`12.5%`, and not 0.125). An empty
cell is blank, as in a CSV file. What a spreadsheet shows as an error, and a formula that was never
computed, is an UnreadCell.
"""

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tasks.curation.readers.cells import Digits, UnreadCell, canonical_cell
from tasks.errors import DataError

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError),
    *(ElementTree.ParseError, KeyError, ValueError, TypeError, AttributeError, OSError),
)
"""What zipfile and openpyxl raise on bytes that are no workbook."""
_ZEROS = re.compile("00+")
# "red_x000D_", as XML has no such line end; "_x005F_x000D_" is the text "_x000D_" itself.
_ESCAPED = re.compile("_x(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")
_FORMULA = re.compile(rb"<f[ >/]")


def read_workbook(path: Path) -> Iterator[list[object]]:
    """Yield the header and the rows that are not blank, without the blank cells at their ends.

    Raises:
        DataError: it is damaged or no workbook, or not one visible sheet alone has rows.
    """
    with _opened(path, values=True) as book:
        sheet = _only_sheet(book, path)
        has_formulas = _has_formulas(path)
        with _opened(path, values=False) as other:
            formulas = other[sheet.title].iter_rows() if has_formulas else iter(())
            if has_formulas:
                other[sheet.title].reset_dimensions()
            for row in sheet.iter_rows():
                texts = next(formulas, ())
                cells = [_cell(cell) for cell in row]
                for place, formula in enumerate(texts):
                    if cells[place] == "" and formula.data_type == "f":
                        cells[place] = UnreadCell(f"the formula {formula.value} has no value")
                while cells and cells[-1] == "":
                    cells.pop()
                if cells:
                    yield cells


@contextmanager
def _opened(path: Path, *, values: bool) -> Iterator["Workbook"]:
    import openpyxl  # most tables are no workbooks

    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise DataError(f"{path.name} is damaged: {damaged}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=values)
        try:
            yield book
        finally:
            book.close()
    except DataError:
        raise
    except _BROKEN as error:  # a sheet is parsed while its rows are read
        raise DataError(f"{path.name} is no workbook that can be read: {error}") from error


def _only_sheet(book: "Workbook", path: Path) -> "Worksheet":
    """Return the visible sheet that has rows.

    Raises:
        DataError: none has, or several have.
    """
    results: list[Worksheet] = []
    for sheet in book.worksheets:
        # What a writer says of a sheet's size is often wrong, and bounds what is read.
        sheet.reset_dimensions()
        if sheet.sheet_state == "visible" and any(
            cell.value is not None for row in sheet.iter_rows() for cell in row
        ):
            results.append(sheet)
    names = ", ".join(sheet.title for sheet in results)
    if len(results) != 1:
        raise DataError(
            f"{path.name} has {len(results) or 'no'} visible sheets with rows"
            f"{f' ({names})' if names else ''}. Save one sheet as a file of its own"
        )
    return results[0]


def _has_formulas(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(_FORMULA.search(archive.read(name)) for name in sheets)


def _cell(cell: object) -> object:
    value, kind = getattr(cell, "value", None), getattr(cell, "data_type", "n")
    if value is None:
        return ""
    if kind == "e":
        return UnreadCell(f"the spreadsheet shows {value}")
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()  # a date is a point in time to a spreadsheet
    digits = str(getattr(cell, "number_format", ""))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value, digits)
    if isinstance(value, str):
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value)
    return canonical_cell(value)


def _number(value: float, digits: str) -> object:
    """Return a number as its format shows it: as a key, in per cent, or with at most 15 digits."""
    if isinstance(value, int) and _ZEROS.fullmatch(digits):
        return f"{value:0{len(digits)}d}"
    if "%" in digits:
        return Digits(f"{(Decimal(f'{value:.15g}') * 100).normalize():f}%")
    return value if isinstance(value, int) else float(f"{value:.15g}")  # 0.30000000000000004
