#!/usr/bin/env bash
# Expected: a cache of results tells a table whose columns were renamed from the table before. Seen: the
# fingerprint of a DataFrame is that of its rows: after the names of two columns were changed about, the
# share of accepted answers is read from the cache, and is that of the rejected ones.
# Version: apache-hamilton 1.90.0. Matters: mending mislabelled columns changes no number downstream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check apache-hamilton==1.90.0 pandas==2.3.3
cat > graded.py <<'PYTHON'
import pandas as pd


def accepted_share(answers: pd.DataFrame) -> float:
    return float(answers["accepted"].mean())
PYTHON
cat > show.py <<'PYTHON'
import graded
import pandas as pd
from hamilton import driver


def share(answers, cached):
    builder = driver.Builder().with_modules(graded)
    built = (builder.with_cache() if cached else builder).build()
    return built.execute(["accepted_share"], inputs={"answers": answers})["accepted_share"]


mislabelled = pd.DataFrame({"accepted": [0, 0, 0, 1], "rejected": [1, 1, 1, 0]})
mended = mislabelled.rename(columns={"accepted": "rejected", "rejected": "accepted"})
for name, answers in (("mislabelled", mislabelled), ("mended", mended)):
    print(f"{name}: with the cache {share(answers, True)}, without it {share(answers, False)}")
assert share(mended, False) == 0.75
assert share(mended, True) == 0.25
PYTHON
HOME=$folder HAMILTON_TELEMETRY_ENABLED=false venv/bin/python show.py 2>/dev/null
