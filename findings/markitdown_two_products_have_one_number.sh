#!/usr/bin/env bash
# Expected: the Markdown of a sheet shows what its cells show. Seen: it is the printed form of a pandas
# frame. One empty cell makes the column one of floats, and the 13 digits of every product number
# (GTIN) are cut to seven: 8850123456789 and 8850123456796 are both 8.850123e+12. Codes that are text
# in the sheet, "007" and "7", are 7.0 twice, and the words "None" and "NA" are NaN. Without the empty
# cell the numbers are whole; a CSV file is left as it is. Version: markitdown 0.1.9, pandas 3.1.1.
# Matters: catalogues and price lists are handed to a model by such a tool; it is asked about a product
# whose number is no longer in the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check 'markitdown[xlsx]==0.1.9' pandas==3.1.1 openpyxl==3.1.5
cat > show.py <<'PYTHON'
import openpyxl
from markitdown import MarkItDown

HEAD = ["gtin", "code", "brand"]
ROWS = [[8850123456789, "007", "None"], [8850123456796, "7", "NA"]]


def table(rows):
    book = openpyxl.Workbook()
    for row in [HEAD, *rows]:
        book.active.append(row)
    book.save("products.xlsx")
    lines = MarkItDown().convert("products.xlsx").text_content.splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


whole = table(ROWS)
holed = table([*ROWS, [None, None, "own"]])
print("two products:               ", *whole)
print("and one without its number: ", *holed)
assert [row[0] for row in whole] == ["8850123456789", "8850123456796"]
assert holed[0] == holed[1] == ["8.850123e+12", "7.0", "NaN"]
PYTHON
HOME=$folder venv/bin/python show.py
