#!/usr/bin/env bash
# Expected: two tool calls in two lines, each of them valid JSON, are two calls, as json_repair
# returns a list for several values in a row. Seen: if both have the same keys and kinds of values,
# the second one is taken for a new version of the first and the first is dropped: of
# cancel(order=1) and cancel(order=2), or of cancel(order=1) and refund(order=1), one call is left,
# and a dict instead of a list. Other arguments (cancel(order=1), search(text="a")), or a comma
# between the calls, and both are returned. The tags <tool_call> around each change nothing.
# Version: json_repair 0.64.6. Matters: models that call in parallel are rewarded, and their calls
# made, for the last call only, exactly where the calls are of one kind.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check json_repair==0.64.6
cat > show.py <<'PYTHON'
from json import dumps

from json_repair import loads


def call(name, **arguments):
    return dumps({"name": name, "arguments": arguments})


def names(text):
    value = loads(text)
    return [each["name"] for each in (value if isinstance(value, list) else [value])]


same = [call("cancel", order=1), call("refund", order=1)]
other = [call("cancel", order=1), call("search", text="a")]
print("cancel(order=1), refund(order=1) in two lines:", names("\n".join(same)))
print("cancel(order=1), search(text='a') in two lines:", names("\n".join(other)))
assert names("\n".join(same)) == ["refund"]
assert names("\n".join(other)) == ["cancel", "search"]
assert names(", ".join(same)) == ["cancel", "refund"]
assert names("".join(f"<tool_call>\n{each}\n</tool_call>\n" for each in same)) == ["refund"]
twice = "\n".join([call("cancel", order=1), call("cancel", order=2)])
assert loads(twice) == {"name": "cancel", "arguments": {"order": 2}}
PYTHON
HOME=$folder venv/bin/python show.py
