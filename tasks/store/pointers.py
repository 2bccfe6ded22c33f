"""Git LFS's pointers: small texts that stand for a file which was not fetched."""

from pathlib import Path

_START = b"version https://git-lfs.github.com/spec/"
_LARGEST = 1024
"""Bytes, https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md."""


def is_pointer(path: Path) -> bool:
    """Whether a file is such a text."""
    if path.stat().st_size > _LARGEST:
        return False
    with path.open("rb") as file:
        return file.read(len(_START)) == _START
