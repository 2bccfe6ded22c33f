#!/usr/bin/env bash
# Expected: of two values that are logged for one metric at one step, the later is the current
# one. Seen: values are ordered by step, then by milliseconds, then by size. Two calls within one
# millisecond, or two values with one time stamp, leave the larger as the run's value, whichever
# came last. Version: mlflow-skinny 3.17.2 with its SQLite store. Matters: a loss that is
# corrected downwards, or an accuracy that an evaluation overwrites after it found a fault, keeps
# the wrong figure in tables, searches and comparisons.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1 pandas==3.1.1
cat > show.py <<'PYTHON'
import os

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow
from mlflow.entities import Metric

mlflow.set_tracking_uri("sqlite:///runs.db")
client = mlflow.MlflowClient()
with mlflow.start_run() as run:
    for value in (0.9, 0.1):
        client.log_batch(run.info.run_id, [Metric("falling", value, 1000, 5)])
    for value in (0.1, 0.9):
        client.log_batch(run.info.run_id, [Metric("rising", value, 1000, 5)])
metrics = mlflow.get_run(run.info.run_id).data.metrics
history = [one.value for one in client.get_metric_history(run.info.run_id, "falling")]
print("logged 0.9 then 0.1:", metrics["falling"], "of the history", history)
print("logged 0.1 then 0.9:", metrics["rising"])
assert metrics == {"falling": 0.9, "rising": 0.9}
assert sorted(history) == [0.1, 0.9]
PYTHON
HOME=$folder venv/bin/python show.py
