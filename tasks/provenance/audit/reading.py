"""Reading of evidence that somebody may have replaced: it ends, and it stays inside the store.

A file that is a link, a pipe, a device or unreadable, or that is too large to be what its name
says, is reported and never opened for long. The stages read the same files with
`tasks.store`, which trusts the local disk.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from tasks.errors import DataError
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files, manifest_sizes
from tasks.store.objects import object_problems

Problem = tuple[str, str]
"""(file, what is wrong)"""
MAX_RECORD_BYTES = 256 * 2**20
"""Largest size of a statement or a manifest; a manifest of a million files has about half of it."""
_CHUNK = 2**20
_EXCESS = 2**20
"""Bytes by which a file may exceed its recorded size and still be hashed."""
_HASH_THREADS = 4


class UnreadableEvidence(DataError):
    """Evidence that cannot be what was recorded; the message says what it is."""


def read_record(uri: str) -> bytes:
    """Read a statement or a manifest.

    Raises:
        UnreadableEvidence: it is gone, is no regular file, or is too large.
    """
    place = store_at(uri)
    if place.local_path is None:
        folder, _, name = uri.rpartition("/")
        size = store_at(folder).list_files().get(name)
        if size is None:
            raise UnreadableEvidence("gone")
        if size > MAX_RECORD_BYTES:
            raise UnreadableEvidence(f"is {size} bytes, too large for a record")
        return place.read_bytes()
    with _opened(place.local_path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > MAX_RECORD_BYTES:
            raise UnreadableEvidence(f"is {size} bytes, too large for a record")
        return stream.read()


def read_linked(uri: str) -> bytes:
    """Read a record of a published folder, also where a cache of the hub holds a link to it.

    Raises:
        UnreadableEvidence: as `read_record`.
    """
    return read_record(str(Path(uri).resolve()))


def hash_file(path: Path, expected_bytes: int | None = None) -> str:
    """Hash a regular file.

    Args:
        path: of the file.
        expected_bytes: its recorded size; one that is far larger, as a sparse file may be, is not
            read.

    Raises:
        UnreadableEvidence: it is gone, no regular file, or far larger than recorded.
    """
    digest = hashlib.sha256()
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if expected_bytes is not None and size > expected_bytes + _EXCESS:
            raise UnreadableEvidence(f"is {size} bytes, recorded {expected_bytes}")
        try:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
        except OSError as error:
            raise UnreadableEvidence(f"cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def check_folder(uri: str, digest: str) -> Iterator[Problem]:
    """Yield everything about an object that is not as committed."""
    folder = store_at(uri).local_path
    if folder is None:
        yield from object_problems(uri, digest)
        return
    if folder.is_symlink():
        yield str(folder), "is a link; its content lies outside the store"
        return
    if not folder.is_dir():
        yield str(folder), "gone"
        return
    try:
        manifest = read_record(str(folder / MANIFEST))
    except UnreadableEvidence as error:
        is_gone = str(error) == "gone"
        yield (str(folder), "gone") if is_gone else (str(folder / MANIFEST), str(error))
        return
    if (result := sha256_bytes(manifest)) != digest:
        yield str(folder / MANIFEST), f"sha256 is {result}, recorded {digest}"
        return  # its list is no longer evidence
    try:
        listed = manifest_files(manifest, str(folder / MANIFEST))
    except DataError as error:
        yield str(folder / MANIFEST), str(error)
        return
    yield from _compare(folder, listed, manifest_sizes(manifest))


def _compare(folder: Path, listed: dict[str, str], sizes: Mapping[str, int]) -> Iterator[Problem]:
    """Compare what lies below a folder with what its manifest lists; nothing is followed."""
    files, folders, problems = _present(folder)
    yield from problems
    implied = {parent.as_posix() for name in listed for parent in Path(name).parents}
    for name in sorted(folders - implied):
        yield str(folder / name), "folder added after commit"
    for name in sorted(files - listed.keys()):
        yield str(folder / name), "added after commit"
    for name in sorted(listed.keys() - files):
        yield str(folder / name), "removed after commit"
    both = sorted(files & listed.keys())
    with ThreadPoolExecutor(_HASH_THREADS) as pool:
        hashes = pool.map(lambda name: _hash_or_fault(folder / name, sizes.get(name)), both)
        for name, result in zip(both, hashes, strict=True):
            if result != listed[name]:
                is_hash = len(result) == len(listed[name])
                problem = f"sha256 is {result}, recorded {listed[name]}" if is_hash else result
                yield str(folder / name), problem


def _present(folder: Path) -> tuple[set[str], set[str], list[Problem]]:
    """List (files, folders, problems) below a folder, without its manifest; a link is a file."""
    files: set[str] = set()
    folders: set[str] = set()
    problems: list[Problem] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = list(os.scandir(current))
        except OSError as error:
            problems.append((str(current), f"cannot be read: {error.strerror}"))
            continue
        for entry in entries:
            name = Path(entry.path).relative_to(folder).as_posix()
            if entry.is_dir(follow_symlinks=False):
                folders.add(name)
                waiting.append(Path(entry.path))
            else:
                files.add(name)
    return files - {MANIFEST}, folders, problems


def _hash_or_fault(path: Path, expected_bytes: int | None) -> str:
    try:
        return hash_file(path, expected_bytes)
    except UnreadableEvidence as error:
        return str(error)


def _opened(path: Path) -> BinaryIO:
    """Open a regular file; a link is not followed, and a pipe without a writer does not block.

    Raises:
        UnreadableEvidence: it is anything else.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise UnreadableEvidence("gone") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableEvidence("is a link; its content lies outside the store") from error
        raise UnreadableEvidence(f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableEvidence("is no regular file")
    return os.fdopen(handle, "rb")
