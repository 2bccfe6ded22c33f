"""List an inbox: a folder on disk or a prefix in S3, and what in it is not ready yet.

A link that leads out of the inbox is left. A file is not ready while it has the name of a partial
upload, is empty, is open for writing on this machine, or is a part (`part-00000...`) in a folder
without Hadoop's and Spark's mark `_SUCCESS`. What `no_data` names, such as checksums and hidden
files, is no data.

A file `_mapping.yaml` (or `.yml`, `.json`) says how the rows of all files of its folder and
below are read; the nearest one counts. It is part of what identifies a file: with a corrected
mapping a file is new.
"""

import errno
import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from data_schemas.intake import (
    InboxFile,
)
from data_schemas.mappings import SUFFIXES, ColumnMapping
from tasks.errors import DataError, SettingsError
from tasks.formats.mapping_files import parse_mapping
from tasks.formats.no_data import is_no_data
from tasks.store.interface import Store, store_at

_PARTIAL = (".tmp", ".part", ".partial", ".crdownload", ".filepart", "~")
"""Names that tools give to what they are still writing."""
_SUCCESS = "_SUCCESS"
_MAPPINGS = tuple(f"_mapping{suffix}" for suffix in SUFFIXES)
Mappings = Mapping[PurePosixPath, ColumnMapping | str]
"""Folder -> its mapping, or why it cannot be used."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of an inbox."""

    files: tuple[InboxFile, ...]
    """By key."""
    reasons: Mapping[str, str]
    """Key -> why the file is left for a later run."""


def list_files(inbox: str) -> Listing:
    """List all files below the inbox.

    Raises:
        SettingsError: there is no such folder or bucket, or it may not be read.
        EngineError: S3 does not answer.
    """
    place = store_at(inbox)
    folder = place.local_path
    if folder is not None:
        folder = folder.expanduser().resolve()
        if not folder.is_dir():
            raise SettingsError(
                f"inbox {folder} is not a folder. Create it or set inbox to another."
            )
        place = store_at(str(folder))
    try:
        sizes = place.list_files()
        names = {name for name in sizes if not name.endswith("/")}  # S3's marks of folders
        mappings = {
            PurePosixPath(name).parent: _leaves(name, folder) or _read_mapping(place, name)
            for name in sorted(names)
            if PurePosixPath(name).name in _MAPPINGS
        }
        reasons = {
            name: reason
            for name in sorted(filter(_is_data, names))
            if (reason := _not_ready(name, sizes, folder) or _unmapped(name, mappings))
        }
        ready = sorted(name for name in names if _is_data(name) and name not in reasons)
        fingerprints = place.fingerprints(ready)
    except DataError as error:
        raise SettingsError(
            f"{inbox} is not there: {error}. Set inbox to a folder or s3://bucket/prefix."
        ) from error
    files = tuple(
        InboxFile(
            key=name,
            uri=f"{place.uri}/{name}",
            bytes=sizes[name],
            fingerprint=fingerprints[name],
            mapping=_nearest(name, mappings),
        )
        for name in ready
        if name in fingerprints
    )
    return Listing(files, reasons)


def _read_mapping(place: Store, name: str) -> ColumnMapping | str:
    """Read a mapping file, or return why it cannot be used."""
    try:
        return parse_mapping(place.read_bytes(name), name)
    except (SettingsError, DataError) as error:
        return str(error)


def _nearest(key: str, mappings: Mappings) -> ColumnMapping | None:
    mapping = _mapping_above(key, mappings)
    assert not isinstance(mapping, str)  # such files are left
    return mapping


def _unmapped(key: str, mappings: Mappings) -> str:
    mapping = _mapping_above(key, mappings)
    return f"its mapping file cannot be used: {mapping}" if isinstance(mapping, str) else ""


def _mapping_above(key: str, mappings: Mappings) -> ColumnMapping | str | None:
    above = (mappings[folder] for folder in PurePosixPath(key).parents if folder in mappings)
    return next(above, None)


def _is_data(key: str) -> bool:
    return not any(map(is_no_data, PurePosixPath(key).parts))


def _leaves(key: str, folder: Path | None) -> str:
    """Say that a file is not in the inbox; '' if it is.

    Whoever may drop files must not choose which others of this machine are read and trained on.
    """
    if folder is None or (folder / key).resolve().is_relative_to(folder):
        return ""
    return "it is a link that leads out of the inbox; copy the file"


def _not_ready(key: str, sizes: Mapping[str, int], folder: Path | None) -> str:
    """Why a file cannot be read yet; '' if it can."""
    if reason := _leaves(key, folder):
        return reason
    path = PurePosixPath(key)
    if path.name.endswith(_PARTIAL):
        return "it has the name of a partial upload"
    if not sizes[key]:
        return "it is empty"
    if path.name.startswith("part-") and (path.parent / _SUCCESS).as_posix() not in sizes:
        return f"there is no {_SUCCESS} beside it yet"
    if folder is not None and _is_being_written(folder / key):
        return "a process has it open for writing"
    return ""


def _is_being_written(path: Path) -> bool:
    """True if a process of this machine has the file open for writing.

    The kernel grants a read lease (fcntl(2)) only on a file that nobody writes to. File systems
    without leases say nothing.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(handle)
    return False
