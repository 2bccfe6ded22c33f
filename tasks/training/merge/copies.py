"""Tensors, and rows of tensors, that a merge copies from one parent.

Routers may be kept from one parent, and so may Super Experts (arXiv 2507.23279), few experts whose
down projection writes massive activations: their matrices, or their rows where a file has all
experts of a layer in one tensor, and their row of the router.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from data_schemas.rows import MERGED, Parent
from tasks.errors import SettingsError

_WITH_ROWS = re.compile(r"(.*)\[(\d+(?:,\d+)*)\]")


@dataclass(frozen=True, slots=True)
class Copy:
    """What one pattern of the settings copies."""

    pattern: str
    """Pattern of the names of tensors; '*' is any text."""
    rows: tuple[int, ...]
    """Rows of the first axis; none for the whole tensor."""
    parent: int
    """Place of the parent in the merge."""


@dataclass(frozen=True, slots=True)
class Copies:
    """All of them; of several that copy a whole tensor, the first decides."""

    copies: tuple[Copy, ...]

    @classmethod
    def parse(cls, copied: Mapping[str, Parent], shapes: Mapping[str, Sequence[int]]) -> Self:
        """Parse the patterns of the settings.

        Args:
            copied: parent by pattern, which may end in rows: 'name[3,68]'.
            shapes: of the tensors that are merged.

        Raises:
            SettingsError: a pattern matches no tensor, or a tensor has no such row.
        """
        parsed = []
        for text, parent in copied.items():
            match = _WITH_ROWS.fullmatch(text)
            pattern, rows = (match[1], match[2].split(",")) if match else (text, [])
            copy = Copy(pattern, tuple(map(int, rows)), MERGED.index(parent))
            _check(text, copy, shapes)
            parsed.append(copy)
        return cls(tuple(parsed))

    def whole(self, name: str) -> int | None:
        """Return the parent that a tensor is copied from; None if it is merged."""
        matching = (copy for copy in self._of(name) if not copy.rows)
        return next((copy.parent for copy in matching), None)

    def rows(self, name: str) -> list[tuple[int, int]]:
        """List the rows of a tensor that are copied, and the parent of each."""
        return [(row, copy.parent) for copy in self._of(name) for row in copy.rows]

    def _of(self, name: str) -> list[Copy]:
        return [copy for copy in self.copies if fnmatchcase(name, copy.pattern)]


def _check(text: str, copy: Copy, shapes: Mapping[str, Sequence[int]]) -> None:
    matching = [name for name in shapes if fnmatchcase(name, copy.pattern)]
    if not matching:
        raise SettingsError(f"merge.copied names {text!r}, which matches no tensor of the models")
    for name in matching:
        if copy.rows and (not shapes[name] or max(copy.rows) >= shapes[name][0]):
            raise SettingsError(
                f"merge.copied names {text!r}, and {name} has shape {list(shapes[name])}: "
                "rows are counted from 0 on its first axis"
            )
