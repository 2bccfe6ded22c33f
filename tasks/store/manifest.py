"""The manifest of an artifact: MANIFEST.json lists every file of its folder by digest.

The sha256 of the manifest is the digest of the artifact.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tasks.cores import num_cores
from tasks.errors import DataError, TamperError
from tasks.store.files import canonical_json, sha256_bytes, sha256_file

MANIFEST = "MANIFEST.json"
_OF_THE_HUB = (".cache/huggingface", ".gitattributes", ".git")


def hash_files(paths: Sequence[Path]) -> list[str]:
    """sha256 of each file, on all cores: sha256 releases the interpreter's lock."""
    if len(paths) < 2:
        return [sha256_file(path) for path in paths]
    with ThreadPoolExecutor(min(num_cores(), len(paths))) as pool:
        return list(pool.map(sha256_file, paths))


def folder_manifest(
    folder: Path,
    apart: Collection[str] = (),
    hashed: Callable[[Sequence[Path]], list[str]] = hash_files,
) -> bytes:
    """List every file below a folder with size and sha256, as canonical JSON.

    Args:
        folder: of the artifact.
        apart: names of files that are no part of it, such as a signature of the list.
        hashed: hashes the files.

    Raises:
        DataError: a link or special file, whose content is outside of the artifact.
    """
    names = [name for name in _file_names(folder) if name not in apart]
    for name in names:
        if (folder / name).is_symlink() or not (folder / name).is_file():
            raise DataError(f"{folder / name} is not a regular file; an artifact holds copies only")
    return _list_files(folder, names, hashed)


def is_of_the_hub(name: str) -> bool:
    """Whether a path below a model's folder is what git, or a client of the hub, writes there."""
    return any(name == one or name.startswith(f"{one}/") for one in _OF_THE_HUB)


def copy_folder(folder: Path, out: Path) -> None:
    """Copy the files of a folder from outside the store, without what git and the hub added."""

    def left_out(parent: str, names: list[str]) -> set[str]:
        below = Path(parent).relative_to(folder)
        return {name for name in names if is_of_the_hub((below / name).as_posix())}

    shutil.copytree(folder, out, dirs_exist_ok=True, ignore=left_out)


def source_manifest(folder: Path) -> bytes:
    """List a folder outside the store as `folder_manifest` lists a copy of it.

    What git and the hub write beside its files is left out, as it is of the copy (`copy_folder`).

    A link is read if it leads to a file of the same folder, or to a blob of the same repository
    where the folder is a snapshot in a Hugging Face cache (models--OWNER--NAME/snapshots/<revision>
    with links to blobs).

    Raises:
        DataError: another link, or a special file: a folder from elsewhere could name any file
            of this machine.
    """
    # Nothing else beside the folder: below a home, a folder that is called so is anybody's.
    in_hub_cache = folder.parent.name == "snapshots"
    around = [
        folder.resolve(),
        *([(folder.parents[1] / "blobs").resolve()] if in_hub_cache else []),
    ]
    names = [name for name in _file_names(folder) if not is_of_the_hub(name)]
    for name in names:
        path = folder / name
        if not path.is_file() or not any(map(path.resolve().is_relative_to, around)):
            raise DataError(
                f"{path} is neither a file nor a link to a file below {around[-1]}. Copy the "
                f"folder with its files, as `cp -rL {folder} copy` does, and name the copy."
            )
    return _list_files(folder, names, hash_files)


def _list_files(
    folder: Path, names: list[str], hashed: Callable[[Sequence[Path]], list[str]]
) -> bytes:
    paths = [folder / name for name in names]
    files = {
        name: {"bytes": path.stat().st_size, "sha256": digest}
        for name, path, digest in zip(names, paths, hashed(paths), strict=True)
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TamperError(f"{where} is not a manifest: {error}") from error
    for name in files:
        if leads_outside(name):
            raise TamperError(f"{where} names the file {name!r} outside its artifact")
    return files


def leads_outside(name: str) -> bool:
    """True for a relative name, written by others, that is of no file below the folder it is of."""
    return name.startswith("/") or ".." in Path(name).parts or "\0" in name


def manifest_sizes(manifest: bytes) -> dict[str, int]:
    """Read the sizes in bytes from a manifest that `manifest_files` took, where it has them."""
    entries = json.loads(manifest)["files"].items()
    return {name: one["bytes"] for name, one in entries if isinstance(one.get("bytes"), int)}


def verify_folder(folder: Path, digest: str) -> None:
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
    for where, what in folder_problems(folder, digest):
        raise TamperError(f"{where}: {what}")


def folder_problems(folder: Path, digest: str) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong) for everything about an artifact that is not as committed."""
    path = folder / MANIFEST
    if not path.is_file():
        yield str(folder), "gone"
        return
    manifest = path.read_bytes()
    if sha256_bytes(manifest) != digest:
        yield str(path), f"sha256 is {sha256_bytes(manifest)}, recorded {digest}"
        return  # its entries are not trustworthy
    listed = manifest_files(manifest, str(path))
    present = set(_file_names(folder))
    for name in sorted(present ^ listed.keys()):
        yield str(folder / name), f"{'added' if name in present else 'removed'} after commit"
    both = sorted(present & listed.keys())
    for name, actual in zip(both, hash_files([folder / name for name in both]), strict=True):
        if actual != listed[name]:
            yield str(folder / name), f"sha256 is {actual}, recorded {listed[name]}"


def _file_names(folder: Path) -> list[str]:
    """Return all files, links and special files below a folder, except its own manifest, sorted."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and path != folder / MANIFEST
    )
