"""Artifacts in a store: objects named by the digest of their manifest.

An object is published file by file, its MANIFEST.json last: an object without a manifest does not
exist.
"""

import fcntl
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tasks.errors import DataError, TamperError
from tasks.store.files import canonical_json, sha256_bytes, sha256_file, staged_folder, write_bytes
from tasks.store.interface import Store, store_at
from tasks.store.manifest import MANIFEST, folder_problems, manifest_files, verify_folder

_READS_AT_ONCE = 8
"""Files of a remote object that are hashed at the same time: one stream is slower than the line."""


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
    """Return a local folder with a verified object, downloading it at most once per machine.

    Args:
        uri: the object.
        digest: of its manifest.
        cache: a local folder with the layout of a store, for remote objects.

    Raises:
        DataError: the object is gone.
        TamperError: it differs from what was committed; the message names the file.
    """
    if local := store_at(uri).local_path:
        verify_folder(local, digest)
        return local
    folder = cache / "objects" / digest[:16]
    if not _fetch(uri, digest, folder):
        verify_folder(folder, digest)
    return folder


def on_every_machine(folder: Path) -> Callable[[], Path]:
    """Return a function that returns this folder, on any machine and in any process of a stage.

    Where the folder is the copy of a remote object, each machine downloads and verifies its own,
    once; all other folders must be on a disk that the machines share.
    """
    try:
        origin = json.loads(_origin(folder).read_bytes())
    except FileNotFoundError:
        return partial(Path, folder)
    return partial(_fetched, origin["uri"], origin["digest"], folder)


def _fetched(uri: str, digest: str, folder: Path) -> Path:
    _fetch(uri, digest, folder)
    return folder


def _fetch(uri: str, digest: str, folder: Path) -> bool:
    """Download a remote object and verify it; return False if this machine has it already."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _origin(folder).open("ab") as origin:
        fcntl.flock(origin, fcntl.LOCK_EX)  # the other processes of this machine wait
        if origin.tell() == 0:  # written once, also for an object that was made here
            origin.write(canonical_json({"uri": uri, "digest": digest}))
            origin.flush()
        if folder.exists():
            return False
        place = store_at(uri)
        manifest = place.read_bytes(MANIFEST)
        if sha256_bytes(manifest) != digest:
            raise TamperError(f"{uri}/{MANIFEST}: sha256 is not the recorded {digest}")
        listed = manifest_files(manifest, uri)
        with staged_folder(folder) as staged:
            for name, recorded in listed.items():
                target = staged / name
                place.download_file(target, name)
                if (actual := sha256_file(target)) != recorded:
                    raise TamperError(f"{uri}/{name}: sha256 is {actual}, recorded {recorded}")
            write_bytes(staged / MANIFEST, manifest)
        return True


def keep_beside(folder: Path, store: str, digest: str) -> None:
    """Keep the files of a folder beside an object; those of a later run replace them."""
    place = store_at(f"{store}/beside/{digest[:16]}")
    for path in sorted(folder.iterdir()):
        place.upload_file(path, path.name)


def find_beside(folder: Path, name: str) -> Path:
    """Return a file that was kept beside the object of a local folder, or lies in it.

    Raises:
        DataError: it is gone. Nothing proves it, and the object is whole without it.
    """
    if (folder / name).is_file():
        return folder / name
    here = folder.parent.parent / "beside" / folder.name / name
    if not here.is_file() and _origin(folder).is_file():  # a copy of a remote object
        home, _, _ = str(json.loads(_origin(folder).read_bytes())["uri"]).rpartition("/objects/")
        store_at(f"{home}/beside/{folder.name}").download_file(here, name)
    if not here.is_file():
        raise DataError(f"{name} is not beside {folder}; it was not kept, or was deleted")
    return here


def _origin(folder: Path) -> Path:
    """Return the file beside the copy of an object that says where it comes from."""
    return folder.parent / f".{folder.name}.origin"


def remote_manifest(uri: str) -> bytes:
    """List what is below a prefix now, as the manifest of a folder with the same files would.

    Raises:
        DataError: nothing is there.
    """
    place = store_at(uri)
    sizes = {name: size for name, size in place.list_files().items() if name != MANIFEST}
    if not sizes:
        raise DataError(f"nothing is below {uri}")
    names = sorted(sizes)
    return canonical_json(
        {
            "files": {
                name: {"bytes": sizes[name], "sha256": digest}
                for name, digest in zip(names, _hash_all(place, names), strict=True)
            }
        }
    )


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
    if (actual := sha256_bytes(manifest)) != digest:
        yield where, f"sha256 is {actual}, recorded {digest}"
        return  # its entries are not trustworthy
    listed = manifest_files(manifest, where)
    names = present.keys() - {MANIFEST}
    for name in sorted(names ^ listed.keys()):
        yield f"{uri}/{name}", f"{'added' if name in names else 'removed'} after commit"
    both = sorted(names & listed.keys())
    for name, actual in zip(both, _hash_all(place, both), strict=True):
        if actual != listed[name]:
            yield f"{uri}/{name}", f"sha256 is {actual}, recorded {listed[name]}"


def _hash_all(place: Store, names: Sequence[str]) -> list[str]:
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        return list(pool.map(place.sha256, names))
