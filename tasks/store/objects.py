"""Artifacts in a store: objects named by the digest of their manifest.

An object is published file by file, its MANIFEST.json last: an object without a manifest does not
exist.
"""

from collections.abc import Iterator
from pathlib import Path

from tasks.errors import TamperError
from tasks.store.files import sha256_bytes, sha256_file, staged_folder, write_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, folder_problems, manifest_files, verify_folder


def publish(folder: Path, digest: str, store: str) -> str:
    """Copy a committed local object into a store, unless it is there, and return its uri.

    Raises:
        TamperError: the store has an object of that digest with other files.
    """
    place = store_at(f"{store}/objects/{digest[:16]}")
    names = [*manifest_files((folder / MANIFEST).read_bytes(), str(folder)), MANIFEST]
    there = place.list_files()
    if MANIFEST in there:
        sizes = {name: (folder / name).stat().st_size for name in names}
        for name in sorted(name for name in there | sizes if there.get(name) != sizes.get(name)):
            raise TamperError(
                f"{place.uri}/{name}: not as committed; delete the object and run again"
            )
        return place.uri
    for name in names:
        place.upload_file(folder / name, name)
    return place.uri


def localise(uri: str, digest: str, cache: Path) -> Path:
    """Return a local folder with a verified object, downloading it at most once.

    Args:
        uri: the object.
        digest: of its manifest.
        cache: a local folder with the layout of a store, for remote objects.

    Raises:
        DataError: the object is gone.
        TamperError: it differs from what was committed; the message names the file.
    """
    place = store_at(uri)
    folder = place.local_path or cache / "objects" / digest[:16]
    if place.local_path or folder.exists():
        verify_folder(folder, digest)
        return folder
    manifest = place.read_bytes(MANIFEST)
    if sha256_bytes(manifest) != digest:
        raise TamperError(f"{uri}/{MANIFEST}: sha256 is not the recorded {digest}")
    listed = manifest_files(manifest, uri)
    with staged_folder(folder) as staged:
        for name, recorded in listed.items():
            target = staged / name
            place.download_file(target, name)
            if (found := sha256_file(target)) != recorded:
                raise TamperError(f"{uri}/{name}: sha256 is {found}, recorded {recorded}")
        write_bytes(staged / MANIFEST, manifest)
    return folder


def object_problems(uri: str, digest: str) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong) for everything about an object that is not as committed."""
    place = store_at(uri)
    if place.local_path:
        yield from folder_problems(place.local_path, digest)
        return
    present = place.list_files()
    if MANIFEST not in present:
        yield uri, "gone"
        return
    where = f"{uri}/{MANIFEST}"
    manifest = place.read_bytes(MANIFEST)
    if (found := sha256_bytes(manifest)) != digest:
        yield where, f"sha256 is {found}, recorded {digest}"
        return  # its entries are not trustworthy
    listed = manifest_files(manifest, where)
    names = present.keys() - {MANIFEST}
    for name in sorted(names ^ listed.keys()):
        yield f"{uri}/{name}", f"{'added' if name in names else 'removed'} after commit"
    for name in sorted(names & listed.keys()):
        if (found := place.sha256(name)) != listed[name]:
            yield f"{uri}/{name}", f"sha256 is {found}, recorded {listed[name]}"
