"""Interface of an artifact store, and the choice of its implementation by uri."""

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
"""One slash, because `Path("gs://bucket")` loses the other."""


class Store(Protocol):
    """Files below a uri; the name '' is the uri itself.

    Contract, checked by tests/store/test_interface.py for both implementations: a reader sees a
    complete file or none; exactly one of several creators of a file gets True.

    A missing file raises DataError; a service that does not answer raises EngineError.
    """

    @property
    def uri(self) -> str: ...

    @property
    def local_path(self) -> Path | None:
        """Its folder on this machine; None if it is remote."""
        ...

    def open(self) -> str:
        """Create the store if it does not exist, and return its id.

        Raises:
            SettingsError: it cannot be written.
        """
        ...

    def read_bytes(self, name: str = "") -> bytes:
        """Read a small file."""
        ...

    def write_bytes(self, payload: bytes, name: str = "") -> None:
        """Write a small file atomically."""
        ...

    def create_bytes(self, payload: bytes, name: str = "") -> bool:
        """Write a small file unless it exists; exactly one of several writers gets True."""
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
        """Return the files below a folder by relative name, with their sizes in bytes."""
        ...

    def fingerprints(self, names: Iterable[str]) -> dict[str, str]:
        """Return what identifies the content of files: sha256 on disk, the ETag in S3.

        Files that are gone by now are left out.
        """
        ...

    def delete_file(self, name: str = "") -> None:
        """Delete a file if it exists."""
        ...

    def delete_folder(self, name: str = "") -> None:
        """Delete everything below a folder, if it exists; its manifest first."""
        ...


def store_at(uri: str) -> Store:
    """Return the store of a uri. No other function chooses the implementation.

    Args:
        uri: of a store, or of a folder or file in one.

    Raises:
        SettingsError: neither a path nor s3://bucket/..., or with credentials.
    """
    if _BUCKET.match(uri):
        if has_credentials(uri):
            raise SettingsError(
                f"{redacted(uri)} has credentials in it, which would be recorded. Leave them out "
                "and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        return S3Store(_canonical(uri))
    if _SCHEME.match(uri):
        raise SettingsError(
            f"{redacted(uri)} is neither a path nor s3://bucket/prefix. Copy its content to "
            "one of them; a service with an S3 interface is reached by s3:// and "
            "AWS_ENDPOINT_URL."
        )
    return LocalStore(uri)


def _canonical(uri: str) -> str:
    """Return the one spelling of a place in S3: without slashes at its end.

    A key may hold empty parts, `.` and `..`, but services and their tools differ in what they
    make of them: what is written there is listed under another name, or nowhere.

    Raises:
        SettingsError: the address has one of them.
    """
    place = uri.rstrip("/")
    parts = place.removeprefix("s3://").split("/")
    odd = [part for part in parts if part in ("", ".", "..")]
    if odd:
        fault = f"a part {odd[0]!r}" if odd[0] else "two slashes in a row"
        raise SettingsError(
            f"{uri} has {fault}, which S3 services read differently. Name the place without it."
        )
    return place
