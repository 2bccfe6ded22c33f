#!/usr/bin/env bash
# Expected: a task with as many votes for as against has no majority, or is drawn. Seen: the label that
# stands first in the whole table wins every tie: four answers on which two annotators differ are all
# accepted, and all rejected if the rows are reversed, or if a row on another task stands before them.
# Version: crowd-kit 1.4.2 with pandas 3.1.1; with pandas 2.3.3 it is the first in the alphabet.
# Matters: verdicts of two annotators depend on how their table was sorted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check crowd-kit==1.4.2 pandas==3.1.1 scikit-learn==1.9.1
cat > show.py <<'PYTHON'
import pandas as pd
from crowdkit.aggregation import MajorityVote

votes = [(task, who, label) for task in "abcd" for who, label in (("ann", "accepted"), ("bob", "rejected"))]
for name, rows, winner in (
    ("as collected", votes, "accepted"),
    ("reversed", votes[::-1], "rejected"),
    ("behind a vote on another task", [("e", "ann", "rejected"), *votes], "rejected"),
):
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    seen = MajorityVote().fit_predict(table).loc[list("abcd")].tolist()
    print(f"{name}: {seen}")
    assert seen == [winner] * 4
PYTHON
HOME=$folder venv/bin/python show.py
