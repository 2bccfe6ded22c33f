#!/usr/bin/env bash
# Expected: Dataset.to_csv writes a column of lists whole, in a form that can be read again, or
# refuses it, as CSV has no lists. Seen: it writes the text that numpy prints for people: no commas,
# eight digits of a float, and of a list with more than a thousand elements the first three, three
# dots and the last three. Of 2,000 token ids six are in the file; there is no warning. Versions:
# datasets 5.2.0, numpy 2.4.6, pandas 3.1.1. Matters: token ids, masks and log-probabilities of long
# responses, which are just those that one exports to look at, are lost, and six numbers are read
# back as if they were all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6 pandas==3.1.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import csv

import datasets

datasets.disable_progress_bars()
rows = [{"ids": list(range(2000)), "logprobs": [-0.1234567890123, -1e-12]}]
datasets.Dataset.from_list(rows).to_csv("rows.csv")
with open("rows.csv", newline="") as file:
    row = next(csv.DictReader(file))
print("2,000 ids:", row["ids"])
print("two log-probabilities:", row["logprobs"])
assert row["ids"].split() == ["[", "0", "1", "2", "...", "1997", "1998", "1999]"]
assert row["logprobs"] == "[-1.23456789e-01 -1.00000000e-12]"
PYTHON
HOME=$folder venv/bin/python show.py
