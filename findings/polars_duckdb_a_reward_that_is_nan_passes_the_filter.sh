#!/usr/bin/env bash
# Expected: `reward > 0.5` is false for NaN, as IEEE 754, numpy, pandas and pyarrow have it. Seen:
# for polars and DuckDB NaN is greater than every number, so that the filter keeps the row, and the
# best of a sorted group is the NaN. Neither is of one mind: polars' max passes over NaN, while its
# top_k takes it, DuckDB's max takes it. And DuckDB's answer depends on who holds the table: a NaN
# of a pandas frame arrives as NULL and is filtered out, the same query on the same numbers in a
# polars frame keeps it. Versions: polars 2.1.0, duckdb 2.0.1, pandas 3.1.1, pyarrow 25.0.1.
# Matters: rejection sampling by a threshold, or best of n, picks exactly the rollouts whose reward
# model failed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check polars==2.1.0 duckdb==2.0.1 pandas==3.1.1 pyarrow==25.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
from math import isnan, nan

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

rewards = [0.1, nan, 0.9]
frame = pl.DataFrame({"reward": rewards})
of_pandas = pd.DataFrame({"reward": rewards})
table = pa.table({"reward": rewards})

passed = frame.filter(pl.col("reward") > 0.5)["reward"].to_list()
passed_sql, passed_sql_pandas = (
    [row[0] for row in duckdb.sql(f"select reward from {name} where reward > 0.5").fetchall()]
    for name in ("frame", "of_pandas")
)
print("rewards:", rewards, "of which more than 0.5 are:")
print("  pandas", of_pandas.query("reward > 0.5")["reward"].tolist())
print("  pyarrow", table.filter(pc.field("reward") > 0.5)["reward"].to_pylist())
print("  polars", passed)
print("  DuckDB over polars", passed_sql, "over pandas", passed_sql_pandas)
assert of_pandas.query("reward > 0.5")["reward"].tolist() == [0.9]
assert table.filter(pc.field("reward") > 0.5)["reward"].to_pylist() == [0.9]
assert isnan(passed[0]) and passed[1:] == [0.9]
assert isnan(passed_sql[0]) and passed_sql[1:] == [0.9]
assert passed_sql_pandas == [0.9]

best = frame.top_k(1, by="reward")["reward"][0]
best_sql = duckdb.sql("select max(reward) from frame").fetchall()[0][0]
print("polars' top_k:", best, "polars' max:", frame["reward"].max(), "DuckDB's max:", best_sql)
assert isnan(best) and frame["reward"].max() == 0.9 and isnan(best_sql)
PYTHON
HOME=$folder venv/bin/python show.py
