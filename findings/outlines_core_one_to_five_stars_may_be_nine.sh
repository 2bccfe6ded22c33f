#!/usr/bin/env bash
# Expected: a schema that is compiled for guided decoding allows what the schema allows: a rating from
# 1 to 5 is a digit from 1 to 5, and the keys of an object come in any order. If a keyword cannot be
# compiled, compiling fails. Seen: build_regex_from_schema leaves minimum, maximum and multipleOf out
# without a word, so the expression matches 9, -3 and 1000; it honours minLength and maxItems; keys
# match in the order of the schema alone. Version: outlines_core 0.2.14. Matters: labels and scores
# of judges that are decoded "by schema" still need their range checked, and right answers in
# another order cannot be decoded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check outlines_core==0.2.14
cat > show.py <<'PYTHON'
import json
import re

from outlines_core.json_schema import build_regex_from_schema


def matches(schema: dict, text: str) -> bool:
    return bool(re.fullmatch(build_regex_from_schema(json.dumps(schema)), text))


stars = {"type": "integer", "minimum": 1, "maximum": 5}
rating = {
    "type": "object",
    "properties": {"stars": stars, "label": {"type": "string", "maxLength": 3}},
    "required": ["stars", "label"],
}
for text, seen in {
    "{\"stars\": 4, \"label\": \"ok\"}": True,
    "{\"stars\": 9, \"label\": \"ok\"}": True,
    "{\"stars\": -3, \"label\": \"ok\"}": True,
    "{\"stars\": 4, \"label\": \"long\"}": False,
    "{\"label\": \"ok\", \"stars\": 4}": False,
}.items():
    print(f"{text:30} {matches(rating, text)}")
    assert matches(rating, text) is seen, text
PYTHON
HOME=$folder venv/bin/python show.py
