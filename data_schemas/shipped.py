"""Files that come with the program, by name, in a checkout and where it is installed.

`example:shop` is workflows/examples/shop/shop.yaml, `preset:laptop` and `study:ladder` likewise.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from data_schemas.faults import did_you_mean

_WORKFLOWS = Path(__file__).resolve().parents[1] / "workflows"
FOLDERS: Mapping[str, Path] = {
    "example": _WORKFLOWS / "examples",
    "preset": _WORKFLOWS / "presets",
    "study": _WORKFLOWS / "lab" / "studies",
}
_NAMED = re.compile(rf"({'|'.join(FOLDERS)}):([\w-]+)")
_MAPPING = re.compile(r"^name:", re.MULTILINE)
"""`name: products` begins a mapping file, which lies beside the settings that name it."""


def files(kind: str) -> dict[str, Path]:
    """Return the files of a kind by name; none where its folder is missing."""
    paths = sorted(FOLDERS[kind].rglob("*.yaml"))
    return {path.stem: path for path in paths if not _MAPPING.search(path.read_text())}


def shipped(text: str) -> Path | None:
    """Find the file that a text such as `example:shop` names; None if it does not name one so.

    Raises:
        ValueError: there is no such file.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    kind, name = match.groups()
    known = files(kind)
    if name not in known:
        near = did_you_mean(name, list(known)) or f"use one of {', '.join(known)}"
        raise ValueError(f"there is no {kind} {name!r}; {near}")
    return known[name]
