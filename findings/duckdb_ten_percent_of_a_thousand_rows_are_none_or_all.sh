#!/usr/bin/env bash
# Expected: a sample of 10 % of 1,000 rows holds about 100 of them, each drawn by itself. Seen: for
# a percentage DuckDB draws blocks of 2,048 rows: of a small table the sample is empty nine times in
# ten, and else the whole table; of 5,000 rows it is 0, 904, 2,048 or more, and rows that stand side
# by side come together. "10 percent (bernoulli)" does what one expects, "100 rows" too. Version:
# duckdb 2.0.1. Matters: a held-out part, an audit or a mixture of sources drawn so is empty, or all
# of a source, and in a table that is ordered by source or date it is one source or one week.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check duckdb==2.0.1
cat > show.py <<'PYTHON'
import duckdb


def sizes(num_rows, sample, draws):
    duckdb.sql(f"create or replace table shop as select * from range({num_rows})")
    query = f"select count(*) from shop using sample {sample}"
    return [duckdb.sql(query).fetchall()[0][0] for _ in range(draws)]


blocks = sizes(1000, "10%", 200)
print("10% of 1,000 rows, 200 times:", {size: blocks.count(size) for size in sorted(set(blocks))})
assert set(blocks) == {0, 1000}
more = set(sizes(5000, "10%", 200))
print("10% of 5,000 rows:", sorted(more))
assert more <= {0, 904, 2048, 2952, 4096, 5000}
rows = sizes(1000, "10 percent (bernoulli)", 50)
print("10 percent (bernoulli) of 1,000 rows:", min(rows), "to", max(rows))
assert 40 < min(rows) and max(rows) < 180
assert set(sizes(1000, "100 rows", 5)) == {100}
PYTHON
HOME=$folder venv/bin/python show.py
