#!/usr/bin/env bash
# Expected: a float64 that Dataset.to_json writes is read back as the same number, as with the json
# module of the standard library, or is rounded to so many significant digits. Seen: it is cut ten
# digits behind the point, as pandas does for it: 3.2e-11 is 0.0, the log-probability -1e-12 is
# -0.0, and 1.2345e-9 keeps two of its five digits. The table of the data set in memory, and its
# Parquet file, keep all. Versions: datasets 5.2.0, pandas 3.1.1. Matters: probabilities whose
# logarithm is then taken are infinite, importance weights move, and a digest of the file differs
# from that of what was sampled.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6 pandas==3.1.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import json
from pathlib import Path

import datasets

datasets.disable_progress_bars()
values = [3.2e-11, -1e-12, 1.2345e-9, -0.12345678901234567]
assert [json.loads(json.dumps(value)) for value in values] == values
rows = datasets.Dataset.from_list([{"value": value} for value in values])
rows.to_json("rows.jsonl")
rows.to_parquet("rows.parquet")
read = [json.loads(line)["value"] for line in Path("rows.jsonl").read_text().splitlines()]
for value, back in zip(values, read, strict=True):
    print(value, "is written as", back)
assert read == [0.0, 0.0, 1.2e-9, -0.123456789]
kept = datasets.Dataset.from_parquet("rows.parquet", cache_dir="cache")["value"][:]
assert kept == values
PYTHON
HOME=$folder venv/bin/python show.py
