"""Lists and objects that a cell of a table writes as text, where the file has no other way."""

import ast
import json
import warnings
from contextlib import suppress

from data_schemas.json_text import each_key_once, refuse_constant

MAX_CHARACTERS = 20_000
"""A longer text is not looked into: no list of options is one."""
_JSON = json.JSONDecoder(object_pairs_hook=each_key_once, parse_constant=refuse_constant)


def written_value(cell: object, longest: int = MAX_CHARACTERS) -> object:
    """Return the list or object that a text writes as JSON or as Python does; else the cell.

    Python's own form is what pandas writes for a column of lists: `['red', "Ann's"]`. Nothing is
    evaluated but literals; what is nested too deeply, or longer than `longest`, stays text, as
    does NaN in a list, an object with a key twice, of which either value may be meant, and a
    backslash that begins no escape (`\\s`): of that Python only warns.
    """
    if not isinstance(cell, str) or len(cell) > longest or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    for read in (_JSON.decode, _literal):
        with (
            suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            value = read(cell.strip())
            if isinstance(value, list | dict):
                return value
    return cell


def _literal(text: str) -> object:
    """Evaluate Python's literals.

    Raises:
        ValueError: it is none, or an object has a key twice.
    """
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            each_key_once([(key, None) for key in keys])
    return ast.literal_eval(tree)
