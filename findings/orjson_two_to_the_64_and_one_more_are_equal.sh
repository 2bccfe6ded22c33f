#!/usr/bin/env bash
# Expected: whole numbers in JSON come back as they were written, as from the json module, msgspec
# and pydantic, or are refused. Seen: orjson reads a whole number beyond 64 bits as floating point,
# without a word: 2**64 and 2**64 + 1 are equal, 25! has 16 right digits, and what is written again
# is 1.8446744073709552e19. Numbers of 64 bits are exact. Versions: orjson 3.13.0, msgspec 0.23.0.
# Matters: golds and answers of combinatorics and number theory, and ids of 20 digits: a wrong last
# digit is right, and a row read and written has another digest.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check orjson==3.13.0 msgspec==0.23.0 pydantic==2.14.3
cat > show.py <<'PYTHON'
import json

import msgspec
import orjson
from pydantic_core import from_json

text = str(2**64 + 1)
for name, read in (
    ("json", json.loads),
    ("msgspec", msgspec.json.decode),
    ("pydantic", from_json),
    ("orjson", orjson.loads),
):
    print(f"{name:9}", read(text))
    assert (read(text) == 2**64 + 1) is (name != "orjson")
assert orjson.loads(text) == orjson.loads(str(2**64))
assert orjson.dumps(orjson.loads(text)) == b"1.8446744073709552e+19"
assert orjson.loads(str(2**64 - 1)) == 2**64 - 1
PYTHON
HOME=$folder venv/bin/python show.py
