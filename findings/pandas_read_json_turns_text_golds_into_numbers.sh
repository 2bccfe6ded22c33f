#!/usr/bin/env bash
# Expected: pandas.read_json(lines=True) keeps a JSON string as text; that is why the producer
# quoted it. Seen: a column of strings is made numeric if all of them parse: "007" is 7, "0.50" is
# 0.5, and an identifier of 20 digits becomes a float with 17. A neighbour that does not parse
# ("1/2") keeps the whole column as text. dtype=False keeps them all. Version: pandas 3.1.1.
# Matters: golds, bar codes and order numbers of a quoted column are other values, or not, by
# their neighbours.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pandas==3.1.1
cat > show.py <<'PYTHON'
import io

import pandas as pd


def read(*values, **options):
    text = "\n".join(f'{{"gold": "{value}"}}' for value in values)
    return pd.read_json(io.StringIO(text), lines=True, **options)["gold"].tolist()


print("codes:", read("007", "0815"))
print("an identifier of 20 digits:", read("12345678901234567890"))
print("with a neighbour that is no number:", read("007", "1/2"))
assert read("007", "0815") == [7, 815]
assert read("12345678901234567890") == [1.2345678901234567e19]
assert read("007", "1/2") == ["007", "1/2"]
assert read("007", "0815", dtype=False) == ["007", "0815"]
PYTHON
HOME=$folder venv/bin/python show.py
