"""Stores and files at `s3://bucket/prefix`, under the layout of `tasks.store.local`.

Every function takes a plain path as well, so that callers never ask which it is.
An object is published file by file with its MANIFEST.json last: without a manifest
there is no object. Endpoint and credentials are boto3's own (AWS_ENDPOINT_URL, ...).
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.errors import DataError, EngineError, SettingsError, TamperError
from tasks.store import local

_SCHEME = "s3://"


def is_remote(uri: str) -> bool:
    """True for `s3://...`."""
    return uri.startswith(_SCHEME)


def open_store(uri: str) -> str:
    """Create a store on disk or in S3 if it is not there and return its id.

    Raises:
        SettingsError: it cannot be written.
    """
    if not is_remote(uri):
        return local.open_store(Path(uri))
    mark = f"{uri}/{local.STORE_MARK}"
    try:
        create_bytes(mark, local.canonical_json({"id": uuid.uuid4().hex}))
        return str(json.loads(read_bytes(mark))["id"])
    except (DataError, EngineError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"store {uri} cannot be used: {error}") from error


def read_bytes(uri: str) -> bytes:
    """Read one small file.

    Raises:
        DataError: it is not there.
    """
    if not is_remote(uri):
        try:
            return Path(uri).read_bytes()
        except OSError as error:
            raise DataError(f"{uri} cannot be read: {error.strerror}") from error
    bucket, key = _split(uri)
    with _service(uri) as service:
        return service.get_object(Bucket=bucket, Key=key)["Body"].read()


def write_bytes(uri: str, payload: bytes) -> None:
    """Write one small file whole."""
    if not is_remote(uri):
        return local.write_bytes(Path(uri), payload)
    bucket, key = _split(uri)
    with _service(uri) as service:
        service.put_object(Bucket=bucket, Key=key, Body=payload)
    return None


def upload_file(path: Path, uri: str) -> None:
    """Copy a local file of any size to a uri."""
    if not is_remote(uri):
        return local.copy_file(path, Path(uri))
    bucket, key = _split(uri)
    with _service(uri) as service:
        service.upload_file(str(path), bucket, key)
    return None


def download_file(uri: str, path: Path) -> None:
    """Copy a file of any size from a uri to a local path.

    Raises:
        DataError: it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not is_remote(uri):
        if not Path(uri).is_file():
            raise DataError(f"{uri} is gone")
        return local.copy_file(Path(uri), path)
    bucket, key = _split(uri)
    with _service(uri) as service:
        service.download_file(bucket, key, str(path))
    return None


def create_bytes(uri: str, payload: bytes) -> bool:
    """Write one small file unless it is there; of several writers exactly one gets True."""
    if not is_remote(uri):
        return local.create_bytes(Path(uri), payload)
    from botocore.exceptions import ClientError

    bucket, key = _split(uri)
    with _service(uri) as service:
        try:
            service.put_object(Bucket=bucket, Key=key, Body=payload, IfNoneMatch="*")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in {409, 412}:
                return False
            raise
    return True


def list_files(uri: str) -> dict[str, int]:
    """Name every file below a folder or prefix, relative to it, with its size in bytes."""
    if not is_remote(uri):
        folder = Path(uri)
        return {
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    bucket, key = _split(uri)
    prefix = f"{key}/" if key else ""
    with _service(uri) as service:
        pages = service.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return {
            entry["Key"].removeprefix(prefix): entry["Size"]
            for page in pages
            for entry in page.get("Contents", [])
        }


def delete_folder(uri: str) -> None:
    """Delete everything below a folder or prefix, its manifest first; it need not be there."""
    delete_file(f"{uri}/{local.MANIFEST}")
    if not is_remote(uri):
        return shutil.rmtree(uri, ignore_errors=True)
    for name in list_files(uri):
        delete_file(f"{uri}/{name}")
    return None


def delete_file(uri: str) -> None:
    """Delete one file; it need not be there."""
    if not is_remote(uri):
        return Path(uri).unlink(missing_ok=True)
    bucket, key = _split(uri)
    with _service(uri) as service:
        service.delete_object(Bucket=bucket, Key=key)
    return None


def sha256_uri(uri: str) -> str:
    """Hash one file, streamed.

    Raises:
        DataError: it is not there.
    """
    if not is_remote(uri):
        if not Path(uri).is_file():
            raise DataError(f"{uri} is gone")
        return local.sha256_file(Path(uri))
    bucket, key = _split(uri)
    digest = hashlib.sha256()
    with _service(uri) as service:
        for chunk in service.get_object(Bucket=bucket, Key=key)["Body"].iter_chunks(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def publish(folder: Path, digest: str, store: str) -> str:
    """Copy a committed local object into a store and return its uri there.

    Raises:
        TamperError: an object of that digest is there with other files.
    """
    if not is_remote(store):
        raise SettingsError(f"publish needs an s3:// store, got {store}")
    uri = f"{store}/objects/{digest[:16]}"
    names = [*local.manifest_files((folder / local.MANIFEST).read_bytes(), str(folder))]
    there = list_files(uri)
    if local.MANIFEST in there:
        sizes = {name: (folder / name).stat().st_size for name in [*names, local.MANIFEST]}
        for name in sorted(name for name in there | sizes if there.get(name) != sizes.get(name)):
            raise TamperError(f"{uri}/{name}: not as committed; delete the object and run again")
        return uri
    for name in [*names, local.MANIFEST]:
        upload_file(folder / name, f"{uri}/{name}")
    return uri


def localise(uri: str, digest: str, cache: Path) -> Path:
    """Return a local folder with a verified object, downloading it at most once.

    Args:
        uri: the object, on disk or in S3.
        digest: of its manifest.
        cache: a local folder laid out like a store; used for S3 only.

    Raises:
        DataError: the object is gone.
        TamperError: it is not what was committed; the message names the file.
    """
    if not is_remote(uri):
        local.verify_object(Path(uri), digest)
        return Path(uri)
    folder = cache / "objects" / digest[:16]
    if folder.exists():
        local.verify_object(folder, digest)
        return folder
    manifest = read_bytes(f"{uri}/{local.MANIFEST}")
    if local.sha256_bytes(manifest) != digest:
        raise TamperError(f"{uri}/{local.MANIFEST}: sha256 is not the recorded {digest}")
    listed = local.manifest_files(manifest, uri)
    with local.staged_folder(folder) as staged:
        for name, recorded in listed.items():
            target = staged / name
            download_file(f"{uri}/{name}", target)
            if (found := local.sha256_file(target)) != recorded:
                raise TamperError(f"{uri}/{name}: sha256 is {found}, recorded {recorded}")
        local.write_bytes(staged / local.MANIFEST, manifest)
    return folder


def object_problems(uri: str, digest: str) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong) for everything about an object that is not as committed."""
    if not is_remote(uri):
        yield from local.object_problems(Path(uri), digest)
        return
    present = list_files(uri)
    if local.MANIFEST not in present:
        yield uri, "gone"
        return
    where = f"{uri}/{local.MANIFEST}"
    manifest = read_bytes(where)
    if (found := local.sha256_bytes(manifest)) != digest:
        yield where, f"sha256 is {found}, recorded {digest}"
        return  # what it lists proves nothing any more
    listed = local.manifest_files(manifest, where)
    names = present.keys() - {local.MANIFEST}
    for name in sorted(names ^ listed.keys()):
        yield f"{uri}/{name}", f"{'added' if name in names else 'removed'} after commit"
    for name in sorted(names & listed.keys()):
        if (found := sha256_uri(f"{uri}/{name}")) != listed[name]:
            yield f"{uri}/{name}", f"sha256 is {found}, recorded {listed[name]}"


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix(_SCHEME).partition("/")
    return bucket, key.strip("/")


@contextmanager
def _service(uri: str) -> Iterator[Any]:
    """Yield a client; its failures become ours, naming the uri."""
    import boto3
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield boto3.client("s3")
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            raise DataError(f"{uri} is gone: {error}") from error
        raise EngineError(f"{uri}: {error}") from error
    except (BotoCoreError, Boto3Error) as error:
        raise EngineError(f"{uri}: {error}") from error
