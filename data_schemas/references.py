"""References to code of a user's own, in place of a built-in name.

`my_rewards.py:short_enough` is a name in a file, `package.module:name` one in a module that
Python can import. A pinned reference ends in the sha256 of that code,
`my_rewards.py:short_enough@4be1..`: wherever settings or rows go, they say which code they mean
(`tasks/plugins.py` pins and loads).
"""

import re
from dataclasses import dataclass
from typing import Annotated, Self

_FORM = re.compile(
    r"(?P<place>[^\s:@]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"  # lib/my_file.py, package.module
    r":(?P<name>[A-Za-z_]\w*)"
    r"(?:@(?P<digest>[0-9a-f]{64}))?"
)


class Pluggable:
    """Marks a setting that may be the name of a built-in or a reference."""


Named = Annotated[str, Pluggable()]
"""A name in a table of `tasks`, or a reference."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The parts of a reference."""

    place: str
    """File or module."""
    name: str
    digest: str = ""
    """sha256 of the code; '' if it is not pinned."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a reference; None for any other text."""
        match = _FORM.fullmatch(text)
        return match and cls(match["place"], match["name"], match["digest"] or "")

    @property
    def is_file(self) -> bool:
        """Whether the place is a file."""
        return self.place.endswith(".py")

    def __str__(self) -> str:
        pin = f"@{self.digest}" if self.digest else ""
        return f"{self.place}:{self.name}{pin}"


def is_reference(text: str) -> bool:
    """Return whether a name refers to code of a user's own."""
    return _FORM.fullmatch(text) is not None


def monitor_label(name: str) -> str:
    """Return the name of a function in a reference, by which a monitor is reported."""
    reference = ObjectReference.parse(name)
    return reference.name if reference else name
