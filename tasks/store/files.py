"""Digests, canonical JSON and atomic writes on a local disk.

The only module that renames files. Everything is written under a temporary name on the same file
system, fsynced and renamed, so that a reader sees either the complete file or folder or nothing.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pydantic import BaseModel

from tasks.errors import DiskFullError, EngineError, PipelineError

FILE_MODE, FOLDER_MODE = 0o640, 0o750
"""Rows may be of persons and weights are worth money: other users of the machine read neither."""
_FULL_BYTES = 16 * 2**20
"""Less than this is left when a library fails to write its next block."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_SWEEP_FILES_AFTER_S = 86400.0
_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}")
"""What `_temporary_file` calls a file until it is complete."""
_SWEEP_AFTER_S = 60.0
"""Younger folders may belong to a process that has not locked them yet."""

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def sha256_bytes(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def sha256_file(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical_json(value: object) -> bytes:
    """Serialise to canonical JSON, which is the same for equal values.

    Pydantic models are dumped first. Keys are sorted, no spaces, no NaN.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return _CANONICAL.encode(value).encode()


def write_bytes(path: Path, payload: bytes) -> None:
    """Write a file atomically: after a crash it has its old content or its new content."""
    with _temporary_file(path, payload) as temporary:
        temporary.replace(path)
    # A rename is durable once its folder is flushed, not before.
    _sync(path.parent)


def write_stream(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file of any size atomically, as `write_bytes`, from a function that streams it."""
    with _temporary_file(path, write) as temporary:
        temporary.replace(path)
    _sync(path.parent)


def create_bytes(path: Path, payload: bytes, mode: int = FILE_MODE) -> bool:
    """Write a file unless it exists; exactly one of several writers gets True."""
    with _temporary_file(path, payload, mode) as temporary:
        try:
            # A link, because a rename replaces what is there without an error.
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
    _sync(path.parent)
    return True


def copy_file(source: Path, target: Path) -> None:
    """Copy a file of any size atomically: after a crash it has its old or its new content."""
    with _temporary_file(target, b"") as temporary:
        shutil.copyfile(source, temporary)
        # `_temporary_file` has flushed an empty file.
        _sync(temporary)
        temporary.replace(target)
    _sync(target.parent)


def link_folder(source: Path, target: Path) -> None:
    """Hard-link every file of a folder below `target`; no content is copied."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            linked = target / path.relative_to(source)
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.hardlink_to(path)


@contextmanager
def naming_a_full_disk(folder: Path) -> Iterator[None]:
    """Raise DiskFullError if the block fails because the disk of a folder is full.

    Libraries do not say so: torch names its own source file, safetensors and arrow have an error of
    their own. What the block wrote must still be there.
    """
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:  # boundary: see above
        if (problem := disk_error(error, folder)) is None:
            if (free := shutil.disk_usage(folder).free) >= _FULL_BYTES:
                raise
            problem = DiskFullError(_full(folder, free, error))
        raise problem from error


def disk_error(error: BaseException, *folders: Path) -> EngineError | None:
    """Return what an operating system's "full" or "read-only" means here; None for others and ours.

    Args:
        error: of any library that passes on what the system said.
        folders: that were written, apart from the one for temporary files; the fullest one is
            named where the error names no file.
    """
    text, code = str(error), getattr(error, "errno", None)
    is_full = code in _NO_SPACE or any(os.strerror(one) in text for one in _NO_SPACE)
    is_read_only = code == errno.EROFS or os.strerror(errno.EROFS) in text
    if isinstance(error, PipelineError) or not (is_full or is_read_only):
        return None
    name = getattr(error, "filename", None)
    places = [Path(name)] if isinstance(name, str) else [*folders, Path(tempfile.gettempdir())]
    existing = [next(one for one in (place, *place.parents) if one.exists()) for place in places]
    if is_read_only:
        where = next((one for one in existing if _is_read_only(one)), existing[0])
        return EngineError(
            f"the disk of {where} is read-only: {error}. Mount it for writing (after a fault of a "
            "disk the system may have taken that away), or name another place."
        )
    where = min(existing, key=lambda place: shutil.disk_usage(place).free)
    return DiskFullError(_full(where, shutil.disk_usage(where).free, error))


def _full(folder: Path, free: int, error: BaseException) -> str:
    return (
        f"the disk of {folder} is full ({free // 2**20} MiB left): {error}. Free some space or "
        "give the stage a larger disk; a retry helps only on a machine that has more."
    )


def _is_read_only(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a temporary folder, removed when the block ends.

    If the process is killed, the folder remains and its lock is released; `sweep` removes it.

    Args:
        parent: is created if it does not exist.
        prefix: of the folder's name; starts with a dot.
    """
    parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    lock = os.open(temporary, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with naming_a_full_disk(parent):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the temporary folders directly below `parent` whose process was killed."""
    for folder in parent.glob(".*"):
        try:
            if time.time() - folder.stat().st_mtime < _SWEEP_AFTER_S:
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # deleted meanwhile, owned by another user, or not a folder
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:  # its process is running
            continue
        finally:
            os.close(handle)


def sweep_files(folder: Path) -> None:
    """Remove what killed processes left of single files anywhere below a folder.

    They hold no lock, so that only old ones are removed.
    """
    for path in folder.rglob(".*"):
        with suppress(OSError):  # deleted meanwhile
            is_old = time.time() - path.lstat().st_mtime > _SWEEP_FILES_AFTER_S
            if is_old and path.is_file() and _TEMPORARY.fullmatch(path.name):
                path.unlink()


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` when the block ends without error.

    If `target` exists by then, the new folder is deleted and `target` is kept.
    """
    with scratch_folder(target.parent, f".{target.name}.") as temporary:
        yield temporary
        install_folder(temporary, target)


def install_folder(temporary: Path, target: Path) -> None:
    """Flush all files of a folder to disk, then rename it to its target."""
    # Deepest first: a folder is flushed after what it lists.
    for path in sorted(temporary.rglob("*"), reverse=True):
        if not path.is_symlink():
            _sync(path)
    # mkdtemp makes folders that their owner alone may read.
    temporary.chmod(FOLDER_MODE)
    _sync(temporary)
    try:
        temporary.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    _sync(target.parent)


@contextmanager
def _temporary_file(
    path: Path, payload: bytes | Callable[[IO[bytes]], None], mode: int = FILE_MODE
) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming_a_full_disk(path.parent):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming_a_full_disk(path.parent):
            with os.fdopen(handle, "wb") as stream:
                if isinstance(payload, bytes):
                    stream.write(payload)
                else:
                    payload(stream)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
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
