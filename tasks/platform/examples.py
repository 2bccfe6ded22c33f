"""The command `examples`: what comes with the program by name, and a copy of the examples."""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from data_schemas.shipped import FOLDERS, files
from data_schemas.texts import wrapped
from tasks.errors import SettingsError
from tasks.platform.command_line import command_parser

USES = {
    "example": "eachprompt run --settings example:NAME, or `parent: example:NAME` in a file",
    "preset": "eachprompt run --settings preset:NAME, or `parent: NAME` in a file",
    "study": "eachprompt lab study --of study:NAME",
}
_TITLE = re.compile(r"^title: (.*)$", re.MULTILINE)
_COMMENT = re.compile(r"(?:# \S.*\n)+")
"""What a file begins with; a command in it is indented: `#     eachprompt run`."""


def main(arguments: Sequence[str]) -> None:
    """List the settings, presets and studies that come with the program, or copy the examples.

    eachprompt examples
    eachprompt examples --copy examples
    """
    parser = command_parser("eachprompt examples", main.__doc__)
    parser.add_argument("--copy", type=Path, metavar="FOLDER", help="new folder of the copies")
    folder = parser.parse_args(arguments).copy
    lines = [copy(folder)] if folder else listing(shutil.get_terminal_size((100, 40)).columns)
    sys.stdout.write("\n".join(lines) + "\n")


def copy(folder: Path) -> str:
    """Copy the examples with their tables, and say what to type next.

    Raises:
        SettingsError: there is something at this place.
    """
    if folder.exists():
        raise SettingsError(f"--copy: {folder} exists; name a new folder")
    shutil.copytree(
        FOLDERS["example"], folder, ignore=shutil.ignore_patterns("*.md", "__pycache__")
    )
    return f"{folder} has the examples: eachprompt run --settings {folder / 'quick_look.yaml'}"


def listing(columns: int) -> list[str]:
    """Return the lines of the list: each name with the first sentence of its file."""
    lines: list[str] = []
    for kind, use in USES.items():
        known = files(kind)
        width = max(map(len, known), default=0) + 4
        lines += [*wrapped(use, columns, ""), ""] if known else []
        for name, path in known.items():
            first, *rest = wrapped(about(path.read_text()), columns, " " * width) or [""]
            lines += [f"  {name:{width - 2}}{first.strip()}".rstrip(), *rest]
        lines += [""] if known else []
    return lines[:-1]


def about(text: str) -> str:
    """Return a study's title, or the first sentence of the comment that a file begins with."""
    if title := _TITLE.search(text):
        return title[1]
    comment = _COMMENT.match(text)
    words = " ".join(line.removeprefix("# ") for line in comment[0].splitlines()) if comment else ""
    return re.split(r"(?<=\.) (?=[A-Z])", words)[0].rstrip(":.")
