#!/usr/bin/env bash
# Expected: an argument that is declared as text reaches the tool as the text that the model wrote,
# whether it may be left out or not. Seen: with `text: str` it does; with `text: str | None = None` the
# server reads it as JSON first. The text "null" arrives as nothing, silently; "[1, 2]" and '{"a": 1}'
# are refused for not being text; "5", "true" and '"quoted"' pass. Version: mcp 2.3.0. Matters: in an
# environment whose tool writes files or answers, a rollout that writes JSON gets an error, and one
# that writes null writes nothing: the model is punished for a valid call, by the type hint of a
# default. The schema that the model is shown allows the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mcp==2.3.0
cat > show.py <<'PYTHON'
import asyncio

from mcp.server import MCPServer

server = MCPServer("files")


@server.tool()
def required(text: str) -> str:
    return repr(text)


@server.tool()
def optional(text: str | None = None) -> str:
    return repr(text)


async def of(tool, text):
    try:
        return (await server.call_tool(tool, {"text": text})).structured_content["result"]
    except Exception as error:
        return "refused: " + " ".join(str(error).split())[:75]


async def main():
    for text, seen in {
        "plain": "'plain'",
        "null": "None",
        "[1, 2]": "refused",
        '{"a": 1}': "refused",
        "5": "'5'",
        "true": "'true'",
    }.items():
        results = await of("required", text), await of("optional", text)
        print(f"{text:10} required {results[0]:12} optional {results[1]}")
        assert results[0] == repr(text)
        assert results[1].startswith(seen)
    schema = next(tool for tool in await server.list_tools() if tool.name == "optional").input_schema
    assert schema["properties"]["text"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


asyncio.run(main())
PYTHON
HOME=$folder venv/bin/python show.py
