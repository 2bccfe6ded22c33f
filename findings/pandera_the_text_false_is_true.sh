#!/usr/bin/env bash
# Expected: a column of bool that may coerce reads "False" as false, or refuses it. Seen: every text but the
# empty one becomes True, and the table is valid; pydantic reads the same texts as they mean.
# Version: pandera 0.35.0 with pandas 2.3.3. Matters: verdicts come as text from CSV files with a gap, from
# spreadsheets and annotation tools; all of them are accepted then.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check "pandera[pandas]==0.35.0" pandas==2.3.3 pydantic==2.13.0
cat > show.py <<'PYTHON'
import io

import pandas as pd
import pandera.pandas as pa
from pydantic import TypeAdapter

text = "question,accepted\n1,True\n2,False\n3,\n4,false\n5,no\n"
table = pd.read_csv(io.StringIO(text), keep_default_na=False)
schema = pa.DataFrameSchema({"question": pa.Column(int), "accepted": pa.Column(bool, coerce=True)})
seen = schema.validate(table)["accepted"].tolist()
for given, became in zip(table["accepted"], seen):
    print(f"{given!r}: {became}")
assert seen == [True, True, False, True, True]
assert TypeAdapter(list[bool]).validate_python(["True", "False", "false", "no"]) == [True, False, False, False]
PYTHON
HOME=$folder venv/bin/python show.py
