"""Calls in Python's syntax, with literals only: `[f(a=1), g.h(b="x")]`."""

import ast
import io
import keyword
import re
import tokenize
from typing import Any

from data_schemas.json_text import each_key_once
from tasks.algorithms.tool_reward import ToolCall

MAX_RESERVED = 5000
"""Most characters of a text that is searched for keywords: the search is not linear."""
_RESERVED = "reserved_name_"
"""Set before a keyword that is used as a name while Python reads the call."""
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)


def parse_python_calls(text: str, *, keywords: bool = True) -> list[ToolCall] | None:
    """Parse `[f(a=1), g(b=2)]` or `f(a=1)`; None unless all are calls with literals.

    Args:
        text: with or without a fence.
        keywords: an argument may have the name of a keyword of Python.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    text = (fenced[1] if fenced else text).strip().strip("`")
    try:
        try:
            body = ast.parse(text, mode="eval").body
        except SyntaxError:
            if not keywords:
                raise
            body = ast.parse(_keywords_as_names(text), mode="eval").body
        nodes = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
        return [_call(node) for node in nodes]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _call(node: ast.expr) -> ToolCall:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("not a call with keyword arguments")
    arguments: list[tuple[str, Any]] = []
    for argument in node.keywords:
        if argument.arg is None:
            raise ValueError("** has no literal value")
        if any(_repeats_a_key(part) for part in ast.walk(argument.value)):
            raise ValueError("duplicate key")
        arguments.append((argument.arg.removeprefix(_RESERVED), ast.literal_eval(argument.value)))
    return ToolCall(ast.unparse(node.func).replace(_RESERVED, ""), each_key_once(arguments))


def _repeats_a_key(node: ast.AST) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    keys = [ast.literal_eval(key) for key in node.keys if key is not None]
    return len(set(keys)) != len(keys)


def _keywords_as_names(text: str) -> str:
    """Rename Python's keywords where they name an argument or a part of a function's name.

    Raises:
        SyntaxError: the text cannot be cut into tokens.
    """
    if len(text) > MAX_RESERVED:
        raise SyntaxError("too long to search for keywords")
    try:
        results = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from error
    tokens = [token for token in results if token.type not in (tokenize.NL, tokenize.COMMENT)]
    lines = io.StringIO(text).readlines()
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        names_argument = before.string in ("(", ",") and after.string == "="
        if keyword.iskeyword(token.string) and (names_argument or before.string == "."):
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + _RESERVED + line[column:]
    return "".join(lines)
