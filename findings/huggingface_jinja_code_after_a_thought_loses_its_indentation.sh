#!/usr/bin/env bash
# Expected: a chat template gives one prompt in Python and in JavaScript, or an error in the one that
# cannot do it. Seen: the methods strip, lstrip and rstrip take their argument in JavaScript and
# leave it out: lstrip('\n'), with which the templates of reasoning models cut the line breaks behind
# </think>, takes the blanks too, so that an answer of four blanks and "return x" loses them. Further,
# nothing is "None" in the one and empty in the other, '5' == 5 is true in the other, and -7 % 2 is
# 1 and -1. Versions: @huggingface/jinja 0.5.11, jinja2 3.1.6. Matters: a model that was trained on
# prompts of transformers and runs in a browser reads other ones, silently, for code most of all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder
npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/jinja@0.5.11
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check jinja2==3.1.6
cat > cases.json <<'JSON'
[
  ["{{ text.split('</think>')[-1].lstrip('\\n') }}", "    return x", "return x"],
  ["{{ '\"quoted\"'.strip('\"') }}", "quoted", "\"quoted\""],
  ["{{ nothing }}", "None", ""],
  ["{{ 'equal' if '5' == 5 else 'other' }}", "other", "equal"],
  ["{{ -7 % 2 }}", "1", "-1"],
  ["{{ text.split('</think>')[-1].strip() }}", "return x", "return x"]
]
JSON
cat > show.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";

const chat = { text: "<think>\nshort\n</think>\n\n    return x", nothing: null };
const cases = JSON.parse(readFileSync("cases.json", "utf8"));
console.log(JSON.stringify(cases.map(([template]) => new Template(template).render(chat))));
JAVASCRIPT
node show.mjs > javascript.json
cat > show.py <<'PYTHON'
import json

from jinja2.sandbox import ImmutableSandboxedEnvironment

chat = {"text": "<think>\nshort\n</think>\n\n    return x", "nothing": None}
with open("cases.json") as cases, open("javascript.json") as others:
    rows = list(zip(json.load(cases), json.load(others), strict=True))
for (template, python, javascript), other in rows:
    own = ImmutableSandboxedEnvironment().from_string(template).render(chat)
    print(f"{template}: {own!r} in Python, {other!r} in JavaScript")
    assert (own, other) == (python, javascript), template
PYTHON
venv/bin/python show.py
