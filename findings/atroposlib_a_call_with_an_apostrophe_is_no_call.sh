#!/usr/bin/env bash
# Expected: a tool call in valid JSON is read as it stands, whatever its texts are. Seen: every
# apostrophe is made a quotation mark before the JSON is read, also in JSON that needs no repair. A text
# with an apostrophe ("men's shoes", "it's broken") ends too early, and the call counts as an error,
# with the name -ERROR- and no arguments; brands, names of people, English and French are full of
# them. The same call with a typographic apostrophe is read. Version: atroposlib 0.4.0. Matters:
# environments that are built on it punish right calls by the words of their arguments.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps atroposlib==0.4.0
cat > show.py <<'PYTHON'
import json
import logging

from atroposlib.utils.tool_call_parser import parse_tool_call

logging.disable()
TOOLS = [{"name": "search"}]

for query, is_error in (("shoes for men", False), ("men's shoes", True), ("men\u2019s shoes", False)):
    call = json.dumps({"name": "search", "arguments": {"query": query}}, ensure_ascii=False)
    seen = parse_tool_call(f"<tool_call>{call}</tool_call>", TOOLS)
    print(call, "->", seen)
    assert seen == (("-ERROR-", {}, True) if is_error else ("search", {"query": query}, False))
PYTHON
HOME=$folder venv/bin/python show.py
