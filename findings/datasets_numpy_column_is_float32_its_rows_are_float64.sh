#!/usr/bin/env bash
# Expected: a float64 column of a data set that is shown in the numpy format is a float64 array.
# Seen: taken as a column or as a batch it is float32, taken row by row it is float64, of the same
# object. 16777217.0 is 16777216 and a time in seconds is up to 64 seconds off. Integers stay
# int64; the pandas, polars and arrow formats keep the doubles. Asking for dtype=float64 mends it.
# Versions: datasets 5.2.0, numpy 2.4.6. Matters: times, prices in rupiah or dong, sums of log
# probabilities and identifiers that are floats; a check on single rows does not show what a
# batched map computes with.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import numpy as np
from datasets import Dataset

seconds = 1795910423.25
rows = Dataset.from_dict({"time": [seconds, 16777217.0]})
shown = rows.with_format("numpy")
column, row, batch = shown["time"][:], shown[0]["time"], shown[:]["time"]
print("written:", rows["time"][:])
print("row 0:", row, row.dtype)
print("column:", column.astype(np.float64), column.dtype, "batch:", batch.dtype)
assert row.dtype == np.float64 and row == seconds
assert column.dtype == batch.dtype == np.float32
assert column[1] == 16777216 and float(column[0]) != seconds
assert rows.with_format("pandas")["time"][0] == seconds
assert rows.with_format("numpy", dtype=np.float64)["time"][0] == seconds
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python show.py
