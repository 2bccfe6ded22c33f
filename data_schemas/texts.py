"""Texts of others in what people and programs read: names of files, tags, messages."""

import re
import textwrap
import unicodedata
from typing import Annotated

from pydantic import BeforeValidator

_ESCAPE = "unicode_escape"


def on_one_line(text: str) -> str:
    """Write every character that is not printed as its code, so that a text stays on its line.

    A newline in a name would begin a line of its own, which could say anything; a byte that is no
    UTF-8 comes as a lone surrogate, which no output can encode; other characters clear a terminal
    or turn the text around them. Printable text comes back as it is, and so do spaces of every
    width, as between a number and its unit: they move nothing.
    """
    if text.isprintable():
        return text
    return "".join(
        one if _is_shown(one) else one.encode(_ESCAPE, "surrogatepass").decode() for one in text
    )


def _is_shown(character: str) -> bool:
    # str.isprintable() denies every space but U+0020.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines between its words; a word that is longer stays whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


# "   │  ├─ curate", "  - a point": what a line begins with, before its words.
_BEGINNING = re.compile(r"[\s│├└─]*(?:[-✗] )?")
_GOES_ON = str.maketrans({"├": "│", "└": " ", "─": " ", "-": " ", "✗": " "})


def continued(line: str, width: int) -> list[str]:
    """Break one line between its words; the rest stands below them, and a tree's trunk goes on."""
    found = _BEGINNING.match(line)
    indent = f"{found[0] if found else ''}  ".translate(_GOES_ON)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [line]


# "eachprompt run", "    echo x | eachprompt chat", "examples:"
_AS_WRITTEN = re.compile(r"\s|eachprompt |examples:")


def fitted(text: str, width: int) -> list[str]:
    """Break the paragraphs of a help text into lines; commands and what is indented stay lines.

    A command that is longer goes on in the next line, as a shell reads it.
    """
    lines: list[str] = []
    for number, paragraph in enumerate(text.strip("\n").split("\n\n")):
        lines += [""] * (number > 0)
        if _AS_WRITTEN.match(paragraph):
            lines += [part for line in paragraph.split("\n") for part in command_lines(line, width)]
        else:
            lines += wrapped(" ".join(paragraph.split()), width)
    return lines


def command_lines(line: str, width: int) -> list[str]:
    """Break a command in front of its options, with a backslash at the end of a line."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    head, *options = re.split(r" (?=--)", line)
    lines = [head]
    for option in options:
        if len(lines[-1]) + len(option) + 3 <= width:
            lines[-1] += f" {option}"
        else:
            lines.append(f"{indent}    {option}")
    return [f"{one} \\" for one in lines[:-1]] + lines[-1:]


def _if_text(value: object) -> object:
    return on_one_line(value) if isinstance(value, str) else value


OneLine = Annotated[str, BeforeValidator(_if_text)]
"""A text of others in a record that is printed."""
