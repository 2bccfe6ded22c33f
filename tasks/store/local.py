"""Digests, atomic writes, and the content-addressed artifact store on a local disk.

The only module that renames files. Everything is written to a temporary name on
the same file system, fsynced, then renamed, so that a reader sees the whole thing
or nothing. `tasks.store.remote` gives the same objects in S3.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from tasks.errors import DataError, SettingsError, TamperError

MANIFEST = "MANIFEST.json"
STORE_MARK = "store.json"
MIN_FREE_BYTES = 256 * 2**20
"""A run of the embedded default writes about a quarter of this."""
_HASH_THREADS = 4
"""sha256 releases the interpreter lock, so the shards of a checkpoint are hashed side by side."""
_NEW_OBJECT = ".new."
_SWEEP_AFTER_S = 60.0
"""Younger folders may belong to a process that has not locked them yet."""


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


def append_line(path: Path, payload: bytes) -> None:
    """Append one line and fsync it; a torn last line is the reader's to cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        stream.write(payload + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` when the block ends without error.

    If `target` exists by then, the new folder is thrown away: whoever came first wins.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield temporary
        _install(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def folder_manifest(folder: Path) -> bytes:
    """List every file below a folder with size and sha256, as canonical JSON.

    Raises:
        DataError: a link or special file, whose content could change from outside.
    """
    names = _file_names(folder)
    for name in names:
        if (folder / name).is_symlink() or not (folder / name).is_file():
            raise DataError(f"{folder / name} is not a regular file; an artifact holds copies only")
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": digest}
        for name, digest in zip(names, _hash_all(folder, names), strict=True)
    }
    return canonical_json({"files": files})


def manifest_files(manifest: bytes, where: str) -> dict[str, str]:
    """Read the file names and sha256 of a manifest.

    Raises:
        TamperError: it is not a manifest, or names a file outside its folder.
    """
    try:
        files = {
            str(name): str(entry["sha256"]) for name, entry in json.loads(manifest)["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TamperError(f"{where} is not a manifest: {error}") from error
    for name in files:
        if name.startswith("/") or ".." in Path(name).parts:
            raise TamperError(f"{where} names the file {name!r} outside its artifact")
    return files


def open_store(folder: Path) -> str:
    """Create the store if it is not there, clear what a killed process left, return the id.

    Raises:
        SettingsError: the path is a file, cannot be written, or the disk is nearly full.
    """
    mark = folder / STORE_MARK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < MIN_FREE_BYTES:
            raise SettingsError(
                f"store {folder} has {free // 2**20} MiB free, a run needs "
                f"{MIN_FREE_BYTES // 2**20}. Free some space or choose another --store."
            )
        if not mark.exists():
            create_bytes(mark, canonical_json({"id": uuid.uuid4().hex}))
        _sweep(folder / "objects")
        return str(json.loads(mark.read_bytes())["id"])
    except OSError as error:
        raise SettingsError(
            f"store {folder} cannot be written: {error}. Choose another --store."
        ) from error
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{mark} is not a store mark ({error}). Restore it or choose another --store."
        ) from error


@dataclass(slots=True)
class Committed:
    """Where a new object went; empty until it is committed."""

    uri: str = ""
    digest: str = ""


@contextmanager
def new_object(store: Path) -> Iterator[tuple[Path, Committed]]:
    """Yield an empty folder to fill; on leaving, it is committed under its content digest.

    Yields the folder and a record whose `uri` and `digest` are set when the block ends.
    A block that ends with an error, or a process that dies, commits nothing.
    """
    objects = store / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    committed = Committed()
    temporary = Path(tempfile.mkdtemp(dir=objects, prefix=_NEW_OBJECT))
    lock = os.open(temporary, os.O_RDONLY)
    try:
        # Whoever opens the store next sees by the lock that this folder is not rubbish.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary, committed
        (temporary / MANIFEST).unlink(missing_ok=True)
        manifest = folder_manifest(temporary)
        digest = sha256_bytes(manifest)
        target = objects / digest[:16]
        if target.exists():
            # The same content is there: check it, so that a damaged object is never trusted again.
            verify_object(target, digest)
        else:
            write_bytes(temporary / MANIFEST, manifest)
            _install(temporary, target)
        committed.uri, committed.digest = str(target), digest
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(lock)


def verify_object(folder: Path, digest: str) -> None:
    """Re-hash every file of an artifact against its manifest, and the manifest against `digest`.

    Raises:
        DataError: the artifact is gone.
        TamperError: a file was changed, added or removed; the message names it.
    """
    if not (folder / MANIFEST).is_file():
        raise DataError(
            f"artifact {folder} is gone. Clear the cache with 'pyflyte local-cache clear' "
            "or restore the store, then run again."
        )
    for where, what in object_problems(folder, digest):
        raise TamperError(f"{where}: {what}")


def object_problems(folder: Path, digest: str) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong) for everything about an artifact that is not as committed."""
    path = folder / MANIFEST
    if not path.is_file():
        yield str(folder), "gone"
        return
    manifest = path.read_bytes()
    if sha256_bytes(manifest) != digest:
        yield str(path), f"sha256 is {sha256_bytes(manifest)}, recorded {digest}"
        return  # what it lists proves nothing any more
    listed = manifest_files(manifest, str(path))
    present = set(_file_names(folder))
    for name in sorted(present ^ listed.keys()):
        yield str(folder / name), f"{'added' if name in present else 'removed'} after commit"
    both = sorted(present & listed.keys())
    for name, found in zip(both, _hash_all(folder, both), strict=True):
        if found != listed[name]:
            yield str(folder / name), f"sha256 is {found}, recorded {listed[name]}"


def _file_names(folder: Path) -> list[str]:
    """Everything below a folder but folders and its own manifest, sorted."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and path != folder / MANIFEST
    )


def _hash_all(folder: Path, names: list[str]) -> list[str]:
    if len(names) < 2:
        return [sha256_file(folder / name) for name in names]
    with ThreadPoolExecutor(_HASH_THREADS) as pool:
        return list(pool.map(lambda name: sha256_file(folder / name), names))


def _install(temporary: Path, target: Path) -> None:
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


def _sweep(objects: Path) -> None:
    """Remove unfinished objects whose process is dead."""
    for folder in objects.glob(f"{_NEW_OBJECT}*"):
        try:
            if time.time() - folder.stat().st_mtime < _SWEEP_AFTER_S:
                continue
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
