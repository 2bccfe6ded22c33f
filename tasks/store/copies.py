"""Local copies of what lies in S3 without a manifest: base models and raw files from outside."""

from collections.abc import Sequence
from pathlib import Path

from tasks.errors import DataError
from tasks.store.files import canonical_json, sha256_bytes, staged_folder
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST
from tasks.store.objects import localise

S3 = "s3://"


def fetch_folder(uri: str, cache: Path) -> Path:
    """Return a local copy of everything below a prefix, downloaded once per content.

    An object of a store is verified against its manifest; other files have their ETags as
    version, so that a changed prefix is downloaded anew.

    Raises:
        DataError: nothing is there, or a file was replaced during the download.
    """
    place = store_at(uri)
    names = sorted(place.list_files())
    if MANIFEST in names:
        return localise(uri, sha256_bytes(place.read_bytes(MANIFEST)), cache)
    if not names:
        raise DataError(f"nothing is below {uri}")
    versions = place.fingerprints(names)
    folder = cache / "fetched" / sha256_bytes(canonical_json([uri, versions]))[:16]
    if not folder.exists():
        with staged_folder(folder) as staged:
            for name in names:
                place.download_file(staged / name, name)
            if versions != place.fingerprints(names):
                raise DataError(f"{uri} was written to while it was copied; run again")
    return folder


def copy_files(uri: str, out: Path, suffixes: Sequence[str]) -> Path:
    """Copy a file, or the files directly below a prefix, to `out`/s3/bucket/... and return it.

    Args:
        uri: a file if it ends in a suffix, else a prefix.
        out: a folder.
        suffixes: of the files that are copied.

    Raises:
        DataError: the file is not there.
    """
    target = out / "s3" / uri.removeprefix(S3).rstrip("/")
    place = store_at(uri)
    if uri.endswith(tuple(suffixes)):
        place.download_file(target)
        return target
    target.mkdir(parents=True, exist_ok=True)
    for name in place.list_files():
        if "/" not in name and name.endswith(tuple(suffixes)):
            place.download_file(target / name, name)
    return target
