"""Lists and objects that a cell of a table writes as text, where the file has no other way."""

import ast
import json
import warnings
from contextlib import suppress

from data_schemas.json_text import refuse_constant

MAX_CHARACTERS = 20_000
"""A longer text is not looked into: no list of options is one."""
_JSON = json.JSONDecoder(parse_constant=refuse_constant)


def written_value(cell: object) -> object:
    """Return the list or object that a text writes as JSON or as Python does; else the cell.

    Python's own form is what pandas writes for a column of lists: `['red', "Ann's"]`. Nothing is
    evaluated but literals; what is nested too deeply, or longer than MAX_CHARACTERS, stays text, as
    does NaN in a list, and a backslash that begins no escape (`\\s`): of that Python only warns.
    """
    if (
        not isinstance(cell, str)
        or len(cell) > MAX_CHARACTERS
        or cell.lstrip()[:1] not in ("[", "{")
    ):
        return cell
    for read in (_JSON.decode, ast.literal_eval):
        with (
            suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            value = read(cell.strip())
            if isinstance(value, list | dict):
                return value
    return cell
