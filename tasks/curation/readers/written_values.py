"""Lists and objects that a cell of a table writes as text, where the file has no other way."""

import ast
import json
from contextlib import suppress

MAX_CHARACTERS = 20_000
"""A longer text is not looked into: no list of options is one."""


def written_value(cell: object) -> object:
    """Return the list or object that a text writes as JSON or as Python does; else the cell.

    Python's own form is what pandas writes for a column of lists: `['red', "Ann's"]`. Nothing is
    evaluated but literals; what is nested too deeply, or longer than MAX_CHARACTERS, stays text.
    """
    if (
        not isinstance(cell, str)
        or len(cell) > MAX_CHARACTERS
        or cell.lstrip()[:1] not in ("[", "{")
    ):
        return cell
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            value = read(cell.strip())
            if isinstance(value, list | dict):
                return value
    return cell
