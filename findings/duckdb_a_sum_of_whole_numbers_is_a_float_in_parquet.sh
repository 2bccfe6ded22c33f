#!/usr/bin/env bash
# Expected: the sum of a column of whole numbers is a whole number in the file, as on the screen.
# Seen: a sum of integers of any width is a HUGEINT, for which Parquet has no type, and COPY writes
# it as a double without a word: 9007199254740995 on the screen is 9007199254740996 in the file, and
# the wins of 0 and 1 are 1.0. As an Arrow table the same query has a decimal of 38 digits. A count
# stays whole, and so does a sum that is cast to BIGINT. Versions: duckdb 2.0.1, pyarrow 25.0.1.
# Matters: tokens, wins and cents that are summed into a table: a check of its schema fails, a join on
# it or an equality of totals holds for unequal ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import duckdb
import pyarrow.parquet

SUMS = """
    SELECT sum(x) AS total, count(x) AS number, sum(x)::BIGINT AS whole
    FROM (VALUES (9007199254740993::BIGINT), (2)) t(x)
"""
screen = duckdb.sql(SUMS).fetchall()[0]
duckdb.sql(f"COPY ({SUMS}) TO 'sums.parquet'")
table = pyarrow.parquet.read_table("sums.parquet")
print("screen:", screen)
print("file:", {field.name: (str(field.type), table[field.name][0].as_py()) for field in table.schema})
assert screen == (9007199254740995, 2, 9007199254740995)
assert [str(field.type) for field in table.schema] == ["double", "int64", "int64"]
assert int(table["total"][0].as_py()) == 9007199254740996
duckdb.sql("COPY (SELECT sum(win) AS wins FROM (VALUES (0), (1)) t(win)) TO 'wins.parquet'")
print("wins of 0 and 1:", pyarrow.parquet.read_table("wins.parquet").to_pylist())
assert repr(pyarrow.parquet.read_table("wins.parquet")["wins"][0].as_py()) == "1.0"
arrow = duckdb.sql(SUMS).to_arrow_table().schema.field("total").type
print("Arrow:", arrow)
assert str(arrow) == "decimal128(38, 0)"
PYTHON
HOME=$folder venv/bin/python show.py
