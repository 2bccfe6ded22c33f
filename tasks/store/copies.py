"""Local copies of what lies in S3 without a manifest: base models and raw files from outside."""

from collections.abc import Sequence
from pathlib import Path

from tasks.errors import DataError
from tasks.store.files import canonical_json, sha256_bytes, staged_folder
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, leads_outside
from tasks.store.objects import localise

S3 = "s3://"


def fetch_folder(uri: str, cache: Path) -> Path:
    """Return a local copy of everything below a prefix, downloaded once per content.

    An object of a store is verified against its manifest; other files have their ETags as
    version, so that a changed prefix is downloaded anew.

    Raises:
        DataError: nothing is there, a key of the bucket would be written elsewhere, or a file was
            replaced during the download.
    """
    place = store_at(uri)
    names = sorted(name for name in place.list_files() if name and not name.endswith("/"))
    if MANIFEST in names:
        return localise(uri, sha256_bytes(place.read_bytes(MANIFEST)), cache)
    if not names:
        raise DataError(f"nothing is below {uri}")
    for name in names:
        if leads_outside(name):
            raise DataError(f"{uri} has the key {name!r}, which is of no file below it")
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
    if uri.lower().endswith(tuple(suffixes)):
        place.download_file(target)
        return target
    target.mkdir(parents=True, exist_ok=True)
    for name in place.list_files():
        if "/" not in name and name.lower().endswith(tuple(suffixes)):
            place.download_file(target / name, name)
    return target


def require_files(uri: str, suffixes: Sequence[str]) -> None:
    """Refuse a file or prefix of which `copy_files` would copy nothing.

    Raises:
        DataError: there is no such file, or the prefix has none directly below it.
        SettingsError: it may not be read.
        EngineError: S3 does not answer.
    """
    if uri.lower().endswith(tuple(suffixes)):
        folder, _, name = uri.rpartition("/")
        if not store_at(folder).fingerprints([name]):
            raise DataError(f"there is no {uri}. Correct the path.")
    elif not any(
        "/" not in name and name.lower().endswith(tuple(suffixes))
        for name in store_at(uri).list_files()
    ):
        raise DataError(
            f"{uri} has no file directly below it that is read (*{', *'.join(suffixes)}). "
            "Correct the path."
        )
