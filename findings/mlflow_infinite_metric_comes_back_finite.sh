#!/usr/bin/env bash
# Expected: a metric that is infinite is infinite when it is read, as one that is not a number
# comes back as NaN. Seen: infinity comes back as the largest finite double,
# 1.7976931348623157e+308. NaN stays NaN. Nothing warns. Version: mlflow-skinny 3.17.2 with its
# SQLite store. Matters: a check for isfinite on a logged loss or perplexity passes for a run that
# has diverged, and a mean over runs becomes a number of 308 digits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1 pandas==3.1.1
cat > show.py <<'PYTHON'
import math
import os

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow

mlflow.set_tracking_uri("sqlite:///runs.db")
with mlflow.start_run() as run:
    mlflow.log_metric("loss", float("inf"))
    mlflow.log_metric("ratio", float("nan"))
metrics = mlflow.get_run(run.info.run_id).data.metrics
print("read back:", metrics)
assert metrics["loss"] == 1.7976931348623157e308 and math.isfinite(metrics["loss"])
assert math.isnan(metrics["ratio"])
PYTHON
HOME=$folder venv/bin/python show.py
