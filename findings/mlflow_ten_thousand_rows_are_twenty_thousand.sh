#!/usr/bin/env bash
# Expected: the digest of an MLflow dataset, its "unique hash", is another one if a row is another one,
# and surely if there are twice as many rows. Seen: only the first 10,000 rows count. A data frame of
# 20,000 rows has the digest of one whose second half was replaced; of a Hugging Face dataset not even
# the number of rows is in it, so that 10,000, 10,001 and 20,000 rows have one digest. There is no
# warning. Versions: mlflow-skinny 3.17.2, datasets 5.2.0, pandas 3.1.1. Matters: a run on more data, or
# on data whose tail was repaired, is listed as a run on the same data; a search for the runs that used
# a bad version finds all or none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mlflow-skinny==3.17.2 datasets==5.2.0 numpy==2.4.6 pandas==3.1.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import datasets
import mlflow.data
import pandas as pd

frame = pd.DataFrame({"question": [f"question {row}" for row in range(20_000)]})
replaced = frame.copy()
replaced.loc[10_000:, "question"] = "another question"
earlier = frame.copy()
earlier.loc[9_999, "question"] = "another question"
whole, tail, row = (mlflow.data.from_pandas(one).digest for one in (frame, replaced, earlier))
print("20,000 rows:", whole, "with another second half:", tail, "with another row 10,000:", row)
assert whole == tail != row
rows = datasets.Dataset.from_pandas(frame)
digests = {
    count: mlflow.data.from_huggingface(rows.select(range(count)), path="rows").digest
    for count in (9_999, 10_000, 10_001, 20_000)
}
print(digests)
assert digests[9_999] != digests[10_000] == digests[10_001] == digests[20_000]
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 MLFLOW_DISABLE_TELEMETRY=true PYTHONWARNINGS=ignore venv/bin/python show.py
