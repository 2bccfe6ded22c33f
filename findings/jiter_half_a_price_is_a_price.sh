#!/usr/bin/env bash
# Expected: a reader of JSON that was cut off keeps what is complete. jiter (in the clients of
# OpenAI and Anthropic) and pydantic leave out a text without its closing quote and half a word such
# as "tr". Seen: a number that stands at the cut is kept, although more digits may have followed: of
# the price 1299 that was cut after two digits there remains 12, of the same price as a text
# nothing, and of 12.5 that was cut behind its point nothing either. Versions: jiter 0.19.0,
# pydantic 2.14.3. Matters: a response that ended at its token limit yields a complete object with a
# wrong number; a reward or a grader that reads so compares 12 with the gold, or pays it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check jiter==0.19.0 pydantic==2.14.3
cat > show.py <<'PYTHON'
import jiter
from pydantic_core import from_json

for text, seen in {
    '{"sku": "A1", "price": 1299': {"sku": "A1", "price": 1299},
    '{"sku": "A1", "price": 12': {"sku": "A1", "price": 12},
    '{"sku": "A1", "price": 12.': {"sku": "A1"},
    '{"sku": "A1", "price": "12': {"sku": "A1"},
    '{"sku": "A1", "sold": tr': {"sku": "A1"},
    "[4, 3, 2": [4, 3, 2],
}.items():
    of_jiter = jiter.from_json(text.encode(), partial_mode=True)
    print(f"{text:30} {of_jiter}")
    assert of_jiter == from_json(text, allow_partial=True) == seen, text
PYTHON
HOME=$folder venv/bin/python show.py
