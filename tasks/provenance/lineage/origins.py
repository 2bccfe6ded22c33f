"""External sources: the files outside the store that the lineage of a release starts from.

There are two kinds. A stage records a file or folder as an input without a statement and with a
`file://` or `s3://` uri (`StageRecord.source`). An object of curation holds `raw_files.json`, the
list of the raw files that were ingested: files with a relative uri are copied into the object, all
others are read at their own location.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from pydantic import ValidationError

from data_schemas.sources import RAW_FILES, RawFile
from data_schemas.statements import Input, Statement
from tasks.errors import DataError
from tasks.provenance.lineage.places import ORIGIN, origin_name, without_places
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import source_manifest
from tasks.store.objects import remote_manifest


def is_source(item: Input) -> bool:
    """True for an input from outside the store."""
    return not item.statement and item.uri.startswith(("file://", "s3://", ORIGIN))


def present_digest(item: Input) -> str:
    """Hash an external source as it is now.

    Raises:
        DataError: it is not there.
    """
    if item.uri.startswith(ORIGIN):
        raise DataError("was published without its place, and cannot be read")
    if item.uri.startswith("s3://"):
        return sha256_bytes(remote_manifest(item.uri))
    path = Path(unquote(urlparse(item.uri).path))
    if path.resolve().is_relative_to("/proc"):
        raise DataError("is no file of a disk")  # reading one may never end
    return source_digest(path)


def source_digest(path: Path) -> str:
    """Hash a file, or a folder as an artifact's manifest would.

    Raises:
        DataError: it is not there.
    """
    if path.is_dir():
        return sha256_bytes(source_manifest(path))
    return store_at(str(path)).sha256()


def object_uri(store: str, uri: str, digest: str) -> str:
    """Return the location of an object in this store, which may have been moved or copied."""
    name = f"/objects/{digest[:16]}"
    return store + name if uri.endswith(name) else uri


def read_raw_files(uri: str) -> list[RawFile]:
    """Read an object's raw_files.json; empty if it has none.

    Raises:
        DataError: it is not a list of raw files.
    """
    where = f"{uri}/{RAW_FILES}"
    if RAW_FILES not in store_at(uri).list_files():
        return []
    try:
        return [RawFile.model_validate(entry) for entry in json.loads(store_at(where).read_bytes())]
    except (ValueError, TypeError, ValidationError) as error:
        raise DataError(f"{where} is not a list of raw files: {error}") from error


def all_raw_files(store: str, statements: Iterable[Statement]) -> dict[str, str]:
    """List every external file that a chain depends on, with its sha256.

    Files copied into an object are named `objects/<its name>/<file>`.

    Raises:
        DataError: a raw_files.json cannot be read.
    """
    results: dict[str, str] = {}
    for statement in statements:
        results |= {item.uri: item.digest for item in statement.inputs if is_source(item)}
        for output in statement.outputs:
            uri = object_uri(store, output.uri, output.digest)
            for raw in read_raw_files(uri):
                results[raw_name(output.digest, raw)] = raw.sha256
    return dict(sorted(results.items()))


def listed_raw_files(store: str, statements: Iterable[Statement]) -> dict[str, RawFile]:
    """Return what the lists of a chain say of each raw file, by its public name.

    Raises:
        DataError: a raw_files.json cannot be read.
    """
    return {
        public_name(raw_name(output.digest, raw), raw.sha256): raw
        for statement in statements
        for output in statement.outputs
        for raw in read_raw_files(object_uri(store, output.uri, output.digest))
    }


def raw_name(digest: str, raw: RawFile) -> str:
    """Name a raw file: its uri, or its place in the object that holds a copy."""
    if is_inside(raw):
        return f"objects/{digest[:16]}/{raw.uri}"
    return raw.uri


def public_names(raw_files: Mapping[str, str]) -> dict[str, str]:
    """Name external files without their places, with their sha256.

    Args:
        raw_files: as `all_raw_files` lists them.
    """
    return {public_name(name, sha256): sha256 for name, sha256 in raw_files.items()}


def public_name(name: str, sha256: str) -> str:
    """Name an external file, or one that was copied into an object, without its place."""
    return name if name.startswith("objects/") else origin_name(name, sha256)


def public_settings(statement: Statement) -> str:
    """Return the settings of a statement with names in the stead of places."""
    return canonical_json(without_places(json.loads(statement.settings))).decode()


def is_inside(raw: RawFile) -> bool:
    """True if the object that lists a raw file also holds it."""
    return "://" not in raw.uri and not raw.uri.startswith("/")
