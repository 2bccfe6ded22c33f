#!/usr/bin/env bash
# Expected: a column of sizes, "XL" among numbers, is read as text, or the read fails. Seen: polars
# with its default reader (calamine, by fastexcel) takes the type from the rows that it samples, and
# later cells of text in a column of numbers are null, without a word. Where the cell was the only one
# of its row the row is gone, as rows of nulls are dropped after that. With the text in front it is
# kept, and engine="openpyxl" reads the same file as text wherever the cell stands. Versions: polars 2.1.0,
# fastexcel 0.21.0, openpyxl 3.1.5. Matters: sizes, model numbers and codes of a product feed that
# are words now and then; a check on ten rows finds nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check polars==2.1.0 fastexcel==0.21.0 openpyxl==3.1.5 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import openpyxl
import polars as pl


def write(name, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(name)


numbers = [[f"shoe {index}", 40 + index % 5] for index in range(200)]
write("last.xlsx", [["name", "size"], *numbers, ["shirt", "XL"]])
write("first.xlsx", [["name", "size"], ["shirt", "XL"], *numbers])
write("alone.xlsx", [["size"], *([row[1]] for row in numbers), ["XL"]])

last = pl.read_excel("last.xlsx")
first = pl.read_excel("first.xlsx")
alone = pl.read_excel("alone.xlsx")
other = pl.read_excel("last.xlsx", engine="openpyxl")
print("XL last: ", last.schema, last.row(-1))
print("XL first:", first.schema, first.row(0))
print("by openpyxl:", other.schema, other.row(-1))
print("XL last, one column: rows", alone.height, "of 201; by openpyxl", end=" ")
print(pl.read_excel("alone.xlsx", engine="openpyxl").height)
assert last.row(-1) == ("shirt", None) and last["size"].dtype.is_numeric()
assert first.row(0) == ("shirt", "XL")
assert other.row(-1) == ("shirt", "XL")
assert alone.height == 200
assert pl.read_excel("alone.xlsx", engine="openpyxl").height == 201
PYTHON
HOME=$folder venv/bin/python show.py
