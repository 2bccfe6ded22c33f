"""Stores in a folder of the local disk."""

import json
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import DataError, SettingsError
from tasks.store import files
from tasks.store.manifest import MANIFEST, folder_manifest, verify_folder

STORE_MARK = "store.json"
MIN_FREE_BYTES = 256 * 2**20
"""A run of the embedded default writes about a quarter of this."""


_ID = re.compile("[0-9a-f]{32}")
_MARK_BYTES = 2**16


def id_in(mark: bytes) -> str:
    """Return the id of a store, which becomes the name of a folder and part of a query of MLflow.

    Args:
        mark: content of `STORE_MARK`.

    Raises:
        ValueError: it is none.
    """
    try:
        entry = json.loads(mark[:_MARK_BYTES])
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise ValueError("it has no id of 32 hexadecimal digits")
    return name


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files below a folder."""

    uri: str

    @property
    def local_path(self) -> Path:
        """The folder itself."""
        return Path(self.uri)

    def open(self) -> str:
        """Create the store if it does not exist, remove what killed processes left, return its id.

        Raises:
            SettingsError: the path is a file, cannot be written, or the disk is nearly full.
        """
        folder = self.local_path
        mark = folder / STORE_MARK
        try:
            folder.mkdir(files.FOLDER_MODE, parents=True, exist_ok=True)
            free = shutil.disk_usage(folder).free
            if free < MIN_FREE_BYTES:
                raise SettingsError(
                    f"store {folder} has {free // 2**20} MiB free, a run needs "
                    f"{MIN_FREE_BYTES // 2**20}. Free some space or choose another --store."
                )
            if not mark.exists():
                files.create_bytes(mark, files.canonical_json({"id": uuid.uuid4().hex}))
            files.sweep(folder / "objects")
            for part in folder.iterdir():
                if part.is_dir() and part.name != "objects":  # whose files are in swept folders
                    files.sweep_files(part)
            return id_in(self.read_bytes(STORE_MARK))
        except OSError as error:
            raise SettingsError(
                f"store {folder} cannot be written: {error}. Choose another --store."
            ) from error
        except ValueError as error:
            raise SettingsError(
                f"{mark} is not a store mark ({error}). Restore it or choose another --store."
            ) from error

    def read_bytes(self, name: str = "") -> bytes:
        """Read a small file."""
        path = self.local_path / name
        try:
            if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
                raise DataError(f"{path} is no regular file")  # a pipe would never end
            return path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error

    def write_bytes(self, payload: bytes, name: str = "") -> None:
        """Write a small file atomically."""
        files.write_bytes(self.local_path / name, payload)

    def create_bytes(self, payload: bytes, name: str = "") -> bool:
        """Write a small file unless it exists."""
        return files.create_bytes(self.local_path / name, payload)

    def upload_file(self, path: Path, name: str = "") -> None:
        """Copy a local file into the store."""
        files.copy_file(path, self.local_path / name)

    def download_file(self, path: Path, name: str = "") -> None:
        """Copy a file of the store to a local path."""
        files.copy_file(self._existing(name), path)

    def sha256(self, name: str = "") -> str:
        """Hash a file, streamed."""
        return files.sha256_file(self._existing(name))

    def list_files(self, name: str = "") -> dict[str, int]:
        """Return the files below a folder by relative name, with their sizes in bytes."""
        folder = self.local_path / name
        return {
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def fingerprints(self, names: Iterable[str]) -> dict[str, str]:
        """Return the sha256 of files."""
        digests = {}
        for name in names:
            with suppress(FileNotFoundError):
                digests[name] = files.sha256_file(self.local_path / name)
        return digests

    def delete_file(self, name: str = "") -> None:
        """Delete a file if it exists."""
        (self.local_path / name).unlink(missing_ok=True)

    def delete_folder(self, name: str = "") -> None:
        """Delete everything below a folder, if it exists; its manifest first."""
        folder = self.local_path / name
        (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)

    def _existing(self, name: str) -> Path:
        path = self.local_path / name
        if not path.is_file():
            raise DataError(f"{path} is gone")
        return path


@dataclass(slots=True)
class NewObject:
    """Uri and digest of a new object; empty until it is committed."""

    uri: str = ""
    digest: str = ""


@contextmanager
def new_object(folder: Path) -> Iterator[tuple[Path, NewObject]]:
    """Yield an empty folder; when the block ends, it is committed under its content digest.

    Yields the folder and a record whose `uri` and `digest` are set when the block ends.
    Nothing is committed if the block raises or the process ends.
    """
    objects = folder / "objects"
    committed = NewObject()
    with files.scratch_folder(objects, ".new.") as temporary:
        yield temporary, committed
        (temporary / MANIFEST).unlink(missing_ok=True)
        manifest = folder_manifest(temporary)
        digest = files.sha256_bytes(manifest)
        target = objects / digest[:16]
        if target.exists():
            # The object exists: verify it, so that a damaged object is not reused.
            verify_folder(target, digest)
        else:
            files.write_bytes(temporary / MANIFEST, manifest)
            files.install_folder(temporary, target)
        committed.uri, committed.digest = str(target), digest
