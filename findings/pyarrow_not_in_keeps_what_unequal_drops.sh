#!/usr/bin/env bash
# Expected: ("language", "!=", "en") and ("language", "not in", ["en"]) select the same rows. Seen: the
# rows whose language is null pass the second and not the first. SQL and polars leave them out both
# times, pandas' query keeps them both times; and in pandas.read_parquet the filters are those of
# pyarrow, so that one query before and after reading differs too. "in" with a None among its values
# finds nulls, "==" None finds nothing. Versions: pyarrow 25.0.1, pandas 3.1.1, duckdb 2.0.1. Matters:
# a list of excluded languages, sources or licences that shrinks to one, or grows to two, moves all
# unlabelled rows into or out of the training data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyarrow==25.0.1 pandas==3.1.1 duckdb==2.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

pq.write_table(pa.table({"row": [1, 2, 3], "language": ["en", "th", None]}), "rows.parquet")


def of_pyarrow(*filters):
    return pq.read_table("rows.parquet", filters=list(filters))["row"].to_pylist()


def of_sql(condition):
    found = duckdb.sql(f"select row from 'rows.parquet' where {condition} order by row").fetchall()
    return [row for (row,) in found]


unequal, not_in = of_pyarrow(("language", "!=", "en")), of_pyarrow(("language", "not in", ["en"]))
print("pyarrow: !=", unequal, "not in", not_in)
assert (unequal, not_in) == ([2], [2, 3])
assert of_pyarrow(("language", "in", ["th", None])) == [2, 3]
assert of_pyarrow(("language", "==", None)) == []
print("DuckDB:  !=", of_sql("language != 'en'"), "not in", of_sql("language not in ('en')"))
assert of_sql("language != 'en'") == of_sql("language not in ('en')") == [2]
frame = pd.read_parquet("rows.parquet")
after = [frame.query(one)["row"].tolist() for one in ("language != 'en'", "language not in ['en']")]
print("pandas:  !=", after[0], "not in", after[1])
assert after == [[2, 3], [2, 3]]
filters = [("language", "!=", "en")]
assert pd.read_parquet("rows.parquet", filters=filters)["row"].tolist() == [2]
PYTHON
HOME=$folder venv/bin/python show.py
