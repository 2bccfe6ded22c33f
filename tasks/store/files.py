"""Digests, canonical JSON and atomic writes on a local disk.

The only module that renames files. Everything is written to a temporary name on
the same file system, fsynced, then renamed, so that a reader sees the whole thing
or nothing.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel


def sha256_bytes(payload: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(payload).hexdigest()


def sha256_file(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical_json(value: object) -> bytes:
    """Serialise to the one byte string that stands for this value.

    Pydantic models are dumped first. Keys are sorted, no spaces, no NaN.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def write_bytes(path: Path, payload: bytes) -> None:
    """Write a file so that a crash leaves the old content or the new, never a part."""
    with _temporary_file(path, payload) as temporary:
        temporary.replace(path)
    _sync(path.parent)


def create_bytes(path: Path, payload: bytes) -> bool:
    """Write a file unless it is there; of several writers exactly one gets True."""
    with _temporary_file(path, payload) as temporary:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
    _sync(path.parent)
    return True


def copy_file(source: Path, target: Path) -> None:
    """Copy a file of any size so that a crash leaves the old content or the new, never a part."""
    with _temporary_file(target, b"") as temporary:
        shutil.copyfile(source, temporary)
        _sync(temporary)
        temporary.replace(target)
    _sync(target.parent)


def link_folder(source: Path, target: Path) -> None:
    """Give every file of a folder a second name below `target`: nothing is copied."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            linked = target / path.relative_to(source)
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.hardlink_to(path)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` when the block ends without error.

    If `target` exists by then, the new folder is thrown away: whoever came first wins.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield temporary
        install_folder(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def install_folder(temporary: Path, target: Path) -> None:
    """Make every byte durable, then show the folder under its name."""
    for path in sorted(temporary.rglob("*"), reverse=True):
        if not path.is_symlink():
            _sync(path)
    temporary.chmod(0o755)
    _sync(temporary)
    try:
        temporary.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    _sync(target.parent)


@contextmanager
def _temporary_file(path: Path, payload: bytes) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
