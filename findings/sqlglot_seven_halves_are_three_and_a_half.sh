#!/usr/bin/env bash
# Expected: a query that sqlglot translates from SQLite to DuckDB gives the same number. Seen: it takes
# care of division by zero, which is NULL in SQLite, with a NULLIF, and of the order of NULLs, but not
# of the division of whole numbers, which SQLite cuts off and DuckDB does not: 7 / 2 is 3 and becomes
# 3.5, a share in whole per cent becomes a fraction, also where both operands are literals. The text for
# PostgreSQL, which cuts off as SQLite does, is the same. Versions: sqlglot 30.30.0, duckdb 2.0.1.
# Matters: text-to-SQL sets whose golds were written for SQLite and are executed on DuckDB have other
# answers, and refuse a model that computes what was asked.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.1
cat > show.py <<'PYTHON'
import sqlite3

import duckdb
import sqlglot

sqlite = sqlite3.connect(":memory:")
for database in (sqlite, duckdb):
    database.execute("create table orders (item text, pieces int, boxes int)")
    database.execute("insert into orders values ('tea', 7, 2), ('rice', 4, 0), (null, 5, 3)")

for query, cut_off, exact in [
    ("select 7 / 2", 3, 3.5),
    ("select pieces / boxes from orders where item = 'tea'", 3, 3.5),
    ("select sum(pieces) / count(*) from orders where boxes > 0", 6, 6.0),
    ("select 100 * count(item) / count(*) from orders", 66, 200 / 3),
    ("select pieces / boxes from orders where item = 'rice'", None, None),
]:
    translated = sqlglot.transpile(query, read="sqlite", write="duckdb")[0]
    before, after = sqlite.execute(query).fetchone()[0], duckdb.execute(translated).fetchone()[0]
    print(query, "->", translated, "\n ", before, "->", after)
    assert sqlglot.transpile(query, read="sqlite", write="postgres")[0] == translated
    assert (before, after) == (cut_off, exact)
PYTHON
HOME=$folder venv/bin/python show.py
