#!/usr/bin/env bash
# Expected: rows whose type does not fit the table are refused, as a column too many is, or the column
# becomes wider, as schema_mode="merge" promises. Seen: append casts each value to the type of the
# first batch. Where the first rewards happened to be 0 and 1, 0.9 is appended as 0 and -0.9 too,
# with "merge" as well; the text "7" becomes 7, and 2 becomes true. A merge of rows and an update do
# the same; NaN and 300 for eight bits are refused. Version: deltalake 1.6.6. Matters: rewards,
# ratings and prices in a table that grows: whether fractions survive depends on who wrote first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import pyarrow
from deltalake import DeltaTable, write_deltalake


def append(name, first, second, **options):
    write_deltalake(name, pyarrow.table({"reward": first}))
    write_deltalake(name, pyarrow.table({"reward": second}), mode="append", **options)
    return DeltaTable(name).to_pyarrow_table().column("reward").to_pylist()[: len(second)]


for name, first, second, options, seen in (
    ("whole", [0, 1], [0.9, -0.9, 4.9], {}, [0, 0, 4]),
    ("wider", [0, 1], [0.9, -0.9, 4.9], {"schema_mode": "merge"}, [0, 0, 4]),
    ("fraction", [0.5, 1.0], [0.9, -0.9, 4.9], {}, [0.9, -0.9, 4.9]),
    ("text", [0, 1], ["7"], {}, [7]),
    ("truth", [True, False], [2], {}, [True]),
):
    rows = append(name, first, second, **options)
    print(f"after {first}, {options or 'without options'}: {second} are {rows}")
    assert rows == seen and type(rows[0]) is type(seen[0]), name
try:
    append("nothing", [0, 1], [float("nan")])
except Exception as error:
    print("NaN is refused:", " ".join(str(error).split())[:60])
else:
    raise AssertionError("NaN")
PYTHON
HOME=$folder venv/bin/python show.py
