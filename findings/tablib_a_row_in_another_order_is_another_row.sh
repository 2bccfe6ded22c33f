#!/usr/bin/env bash
# Expected: rows of a JSON file are objects, so the order of their keys says nothing. Seen: the keys of
# the first row become the header and the values of all others are put below it in the order in which
# they stand; a row that names its price first has its price as its stock. As long as every row has as
# many keys, there is no error, and the setter `Dataset.dict` does the same. Version: tablib 3.10.0.
# Matters: exports of shops that come from more than one system are mixed up when they are turned
# into CSV or a spreadsheet, and every cell still holds a plausible number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check tablib==3.10.0
cat > show.py <<'PYTHON'
import json

import tablib

rows = [{"sku": "A1", "price": 5, "stock": 90}, {"sku": "B2", "stock": 7, "price": 80}]
loaded = tablib.Dataset().load(json.dumps(rows), format="json")
assigned = tablib.Dataset()
assigned.dict = rows
print("given:", rows)
print("loaded:", loaded.dict)
for table in (loaded, assigned):
    first, second = ({**row} for row in table.dict)
    assert first == rows[0]
    assert second == {"sku": "B2", "price": 7, "stock": 80}
PYTHON
HOME=$folder venv/bin/python show.py
