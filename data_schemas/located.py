"""Paths in a file of settings: relative to that file, wherever the command is typed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

_PATHS = ("path", "base_model", "screen_model", "address")
"""Keys whose value is a file or folder unless it is an address."""
_FOLDERS = ("parents", "teachers")
"""Keys whose values are folders of models, by name."""
_FILES = {"adapter": (".yaml", ".yml", ".json"), "parent": (".yaml", ".yml")}
"""Keys whose value is a file if it ends so, and a name otherwise."""
_CODE = re.compile(r"[^\s:@]+\.py:[A-Za-z_]\w*")
"""Code of a user's own: my_file.py:name."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""s3://, hub://, http://, models:/"""


def located(values: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Return values of settings in which relative paths begin at a folder.

    Absolute paths, addresses and names are left as they are, and so is everything where the folder
    is the one that the command was typed in.

    Args:
        values: of a file, as they were read.
        folder: of that file, as it was typed.
    """
    return {key: _value(key, value, folder) for key, value in values.items()}


def _value(key: str, value: object, folder: Path) -> object:
    match value:
        case str():
            return _place(key, value, folder)
        case Mapping():
            entries = cast("Mapping[str, object]", value)
            inner = "path" if key in _FOLDERS else ""
            return {name: _value(inner or name, one, folder) for name, one in entries.items()}
        case list():
            return [_value(key, one, folder) for one in cast("list[object]", value)]
        case _:
            return value


def _place(key: str, text: str, folder: Path) -> str:
    is_path = key in _PATHS or text.endswith(_FILES.get(key, ())) or _CODE.fullmatch(text)
    if not text or not is_path or _ADDRESS.match(text) or text.startswith("~"):
        return text
    return str(folder / text)  # an absolute one stays as it is
