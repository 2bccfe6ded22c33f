#!/usr/bin/env bash
# Expected: Table.from_pylist makes a column of every key that a row has, with null where a row
# lacks it, or refuses rows that differ. Seen: the columns are the keys of the first row. A key
# that only a later row has is dropped without a word; within nested objects (a struct) later keys
# are kept, so one table does both. Version: pyarrow 25.0.1. Matters: rows of chats in which the
# first has no tool call, or an evaluation whose first problem has no error, lose those columns
# for all rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyarrow==25.0.1
cat > show.py <<'PYTHON'
import pyarrow as pa

rows = [
    {"question": "a", "meta": {"level": 1}},
    {"question": "b", "meta": {"level": 2, "source": "shop"}, "tool_calls": "search"},
]
table = pa.Table.from_pylist(rows)
print("columns:", table.column_names)
print("nested:", table.schema.field("meta").type)
assert table.column_names == ["question", "meta"]
assert {field.name for field in table.schema.field("meta").type} == {"level", "source"}
PYTHON
HOME=$folder venv/bin/python show.py
