#!/usr/bin/env bash
# Expected: to validate is to look: the object is afterwards what it was. "default" is an annotation
# of JSON schema, which decides nothing; jsonschema leaves objects alone. Seen: fastjsonschema
# writes the defaults of the schema into the object that it is given. An answer without a label has
# the label "positive" after the check. Versions: fastjsonschema 2.22.3, jsonschema 4.26.0. Matters:
# a grader that checks the form first and compares with the gold then pays for fields that the model
# never wrote, wherever the gold is the default; a log shows an answer that nobody gave.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check fastjsonschema==2.22.3 jsonschema==4.26.0
cat > show.py <<'PYTHON'
import fastjsonschema
import jsonschema

schema = {
    "type": "object",
    "properties": {
        "stars": {"type": "integer"},
        "label": {"enum": ["positive", "negative"], "default": "positive"},
    },
    "required": ["stars"],
}
gold = {"stars": 4, "label": "positive"}
answer = {"stars": 4}
jsonschema.validate(answer, schema)
print("after jsonschema:", answer)
assert answer == {"stars": 4}
fastjsonschema.compile(schema)(answer)
print("after fastjsonschema:", answer)
assert answer == gold
PYTHON
HOME=$folder venv/bin/python show.py
