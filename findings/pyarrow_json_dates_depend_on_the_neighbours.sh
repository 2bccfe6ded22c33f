#!/usr/bin/env bash
# Expected: a JSON string is read as text; JSON has no dates. Seen: pyarrow's JSON reader makes a
# column of timestamps if every string of a block reads like a date, and a column of text if one
# does not. So the answer "2024-02-29" comes back as datetime(2024, 2, 29, 0, 0) from a file of
# dates, and as itself when another row answers in words. Version: pyarrow 25.0.1 (data set
# libraries that load JSON lines stand on this reader). Matters: str(gold) is "2024-02-29
# 00:00:00", which no right response equals, for the files alone in which every answer is a date.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyarrow==25.0.1
cat > show.py <<'PYTHON'
import io

from pyarrow.json import read_json


def golds(*lines):
    text = "\n".join(f'{{"gold": "{line}"}}' for line in lines)
    return [row["gold"] for row in read_json(io.BytesIO(text.encode())).to_pylist()]


alone = golds("2024-02-29", "2023-01-01")
mixed = golds("2024-02-29", "no date is given")
print("a file of dates:", alone)
print("with a neighbour in words:", mixed)
assert str(alone[0]) == "2024-02-29 00:00:00"
assert mixed[0] == "2024-02-29"
PYTHON
HOME=$folder venv/bin/python show.py
