"""Texts from outside on a page: as text, and as data inside its script element."""

import json
import re
from html import escape
from typing import TypeVar

from markupsafe import Markup

Value = TypeVar("Value")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of the text around them."""


def visible(value: Value) -> Value | str:
    """Show a character that turns text around by its code: a row must not turn a page's words.

    What is no text, or is HTML of ours, stays as it is: templates pass all that they print.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _TURNING.sub(lambda match: f"\\u{ord(match[0]):04x}", value)


def escaped(text: str) -> str:
    """Write a text as HTML."""
    return escape(str(visible(text)))


def script_json(data: object) -> str:
    """Write JSON that a page can hold in `<script type="application/json">`.

    No "<" is left: "</script" would end the element, and "<!--<script" would keep it from ending.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return _TURNING.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)
