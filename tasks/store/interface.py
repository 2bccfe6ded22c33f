"""Interface of an artifact store, and the choice of the store for a uri."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from data_schemas.addresses import has_credentials, redacted
from tasks.errors import SettingsError
from tasks.store.local import LocalStore
from tasks.store.s3 import S3Store

_BUCKET = re.compile(r"s3://[^/]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""One slash, because a path that was made of `gs://bucket` has lost the other."""


class Store(Protocol):
    """Files below one uri; the name '' is the uri itself.

    Contract, checked by tests/store/test_interface.py on both kinds: a reader sees a whole file or
    none; of several creators of a file exactly one gets True.

    A file that is not there is a DataError; a place that does not answer is an EngineError.
    """

    @property
    def uri(self) -> str:
        """Where it lies."""
        ...

    @property
    def local_path(self) -> Path | None:
        """Where it lies on this machine; None if it is elsewhere."""
        ...

    def open(self) -> str:
        """Create the store if it is not there and return its id.

        Raises:
            SettingsError: it cannot be written.
        """
        ...

    def read_bytes(self, name: str = "") -> bytes:
        """Read a small file."""
        ...

    def write_bytes(self, payload: bytes, name: str = "") -> None:
        """Write a small file whole."""
        ...

    def create_bytes(self, payload: bytes, name: str = "") -> bool:
        """Write a small file unless it is there; of several writers exactly one gets True."""
        ...

    def upload_file(self, path: Path, name: str = "") -> None:
        """Copy a local file of any size into the store."""
        ...

    def download_file(self, path: Path, name: str = "") -> None:
        """Copy a file of any size to a local path."""
        ...

    def sha256(self, name: str = "") -> str:
        """Hash a file, streamed."""
        ...

    def list_files(self, name: str = "") -> dict[str, int]:
        """Name every file below a folder, relative to it, with its size in bytes."""
        ...

    def fingerprints(self, names: Iterable[str]) -> dict[str, str]:
        """Return what identifies the content of files: sha256 on disk, the ETag in S3.

        Files that are gone by now are left out.
        """
        ...

    def delete_file(self, name: str = "") -> None:
        """Delete a file; it need not be there."""
        ...

    def delete_folder(self, name: str = "") -> None:
        """Delete everything below a folder, its manifest first; it need not be there."""
        ...


def store_at(uri: str) -> Store:
    """Choose the kind of store, the only place that does.

    Args:
        uri: of a store, or of a folder or file that may lie in one.

    Raises:
        SettingsError: neither a path nor s3://bucket/..., or with credentials.
    """
    if _BUCKET.match(uri):
        if has_credentials(uri):
            raise SettingsError(
                f"{redacted(uri)} has credentials in it, which would be recorded. Leave them out "
                "and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        return S3Store(uri.rstrip("/"))
    if _SCHEME.match(uri):
        raise SettingsError(
            f"{redacted(uri)} is neither a path nor s3://bucket/prefix. Copy what lies there to "
            "one of them; a service with the interface of S3 is reached by s3:// and "
            "AWS_ENDPOINT_URL."
        )
    return LocalStore(uri)
