"""Texts of others in what people and programs read: names of files, tags, messages."""

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


def _if_text(value: object) -> object:
    return on_one_line(value) if isinstance(value, str) else value


OneLine = Annotated[str, BeforeValidator(_if_text)]
"""A text of others in a record that is printed."""
