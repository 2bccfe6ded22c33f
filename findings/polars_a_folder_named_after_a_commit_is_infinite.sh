#!/usr/bin/env bash
# Expected: the value of a Hive partition that cannot be a whole number is text: in commit=71e4532
# and commit=0012345 polars finds two hashes, as pyarrow and DuckDB do. Seen: with
# hive_partitioning=True polars reads the column as floating point: 71e4532 is infinity, 0012345 is
# 12345.0, and every partition of the kind 12e4567 is equal to the first one. With a hash that has
# another letter beside them the column is text. Versions: polars 2.1.0, pyarrow 25.0.1, duckdb
# 2.0.1. Matters: a table of results by commit joins and groups runs that have nothing to do with
# each other, and whether it does depends on which runs are there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check polars==2.1.0 pyarrow==25.0.1 duckdb==2.0.1
cat > show.py <<'PYTHON'
from math import inf
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet
from pyarrow import table


def write(commit):
    folder = Path("runs", f"commit={commit}")
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(table({"score": [0.5]}), folder / "part.parquet")


def commits():
    frame = polars.read_parquet("runs/**/*.parquet", hive_partitioning=True)
    return sorted(frame["commit"].to_list())


for commit in ("0012345", "71e4532", "12e4567"):
    write(commit)
of_arrow = sorted(pyarrow.parquet.read_table("runs")["commit"].to_pylist())
query = "select commit from read_parquet('runs/*/*.parquet', hive_partitioning=true)"
of_duckdb = sorted(row[0] for row in duckdb.sql(query).fetchall())
print("pyarrow", of_arrow, "DuckDB", of_duckdb, "polars", commits())
assert of_arrow == of_duckdb == ["0012345", "12e4567", "71e4532"]
assert commits() == [12345.0, inf, inf]
write("9f3a2bc")
print("polars with one more run", commits())
assert commits() == ["0012345", "12e4567", "71e4532", "9f3a2bc"]
PYTHON
HOME=$folder venv/bin/python show.py
