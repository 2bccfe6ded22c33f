#!/usr/bin/env bash
# Expected: `{{ call | tojson }}` of a chat template writes the arguments in their order, in every engine
# that renders Jinja. Seen: jinja2 sorts the keys by the alphabet, at every depth: the name of a call
# stands behind its arguments. MiniJinja (in servers and clients written in Rust) keeps the order, and
# transformers replaces the filter by one that keeps it and escapes nothing; both of the others write
# \u003c for <. Versions: jinja2 3.1.6, minijinja 3.1.0. Matters: whoever renders the template of a model
# in a plain environment (llama-cpp-python, scripts for data) gives it schemas and calls in an order that
# it never saw, and rows that were rendered so train another text than is served.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check jinja2==3.1.6 minijinja==3.1.0
cat > show.py <<'PYTHON'
import json

import jinja2.sandbox
import minijinja

call = {"name": "search", "arguments": {"query": "price < 5", "limit": 10}}
template = "<tool_call>{{ call | tojson }}</tool_call>"
of_jinja2 = jinja2.sandbox.ImmutableSandboxedEnvironment().from_string(template).render(call=call)
of_minijinja = minijinja.Environment().render_str(template, call=call)
print("json     ", json.dumps(call))
print("jinja2   ", of_jinja2)
print("minijinja", of_minijinja)
assert of_jinja2 == (
    '<tool_call>{"arguments": {"limit": 10, "query": "price \\u003c 5"}, "name": "search"}</tool_call>'
)
assert of_minijinja == (
    '<tool_call>{"name": "search", "arguments": {"query": "price \\u003c 5", "limit": 10}}</tool_call>'
)
PYTHON
HOME=$folder venv/bin/python show.py
