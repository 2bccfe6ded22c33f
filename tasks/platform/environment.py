"""Environment variables that are read as a module is imported."""

import os
import sys
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
WRONG_INPUT = 2
"""Exit code of everything that was typed wrong; also what click and argparse exit with."""


def read(variable: str, default: str, parse: Callable[[str], Value]) -> Value:
    """Read a variable. A wrong value ends the process with one line: no command can run with it.

    Args:
        variable: its name.
        default: what an unset variable stands for.
        parse: raises ValueError, of which SettingsError is one, with what is allowed.
    """
    text = os.environ.get(variable, default)
    try:
        return parse(text)
    except ValueError as error:
        sys.stderr.write(f"SettingsError: {variable} is {text!r}; {error}\n")
        sys.exit(WRONG_INPUT)


def positive(text: str) -> int:
    """Read a count.

    Raises:
        ValueError: it is none.
    """
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ValueError("give a whole number from 1 on")
    return int(text)


def image(text: str) -> str:
    """Read the reference of a container image.

    Raises:
        ValueError: it is empty or has white space.
    """
    if not text or text.split() != [text]:
        raise ValueError("name an image by tag or digest: registry/name:tag")
    return text
