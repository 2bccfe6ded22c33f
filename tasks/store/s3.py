"""Stores at a prefix of a bucket, `s3://bucket/prefix`.

Endpoint and credentials are those of boto3 (AWS_ENDPOINT_URL, ...), so that every service with an
S3 interface can be used.
"""

import hashlib
import io
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_schemas.addresses import redacted
from tasks.errors import DataError, EngineError, SettingsError
from tasks.store.files import canonical_json
from tasks.store.local import STORE_MARK, id_in
from tasks.store.manifest import MANIFEST

_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
"""Errors that another attempt cannot help; an expired token or a wrong clock may be mended."""
CONNECT_S, READ_S, ATTEMPTS = 5.0, 15.0, 3
"""Limits of a request, which is tried again after at most 3 s: an S3 that accepts connections and
never answers ends a stage after 45 to 48 s. With botocore's defaults it takes minutes."""
_CONFLICTS = 5
"""Attempts at a conditional write while another one on the same key is in progress (409)."""
_PROBE = "spool/probe"
"""Folder of the keys that ask what a service can do; pods may delete there."""
_NO_PARTS = {400, 404, 405, 501}
"""Answers to an upload in parts of a service that has none: S3's NotImplemented, and of routers."""
_NEW_CLIENT = threading.Lock()
"""Clients may be used in several threads; boto3's session makes one at a time."""


@dataclass(frozen=True, slots=True)
class S3Store:
    """Files below a prefix."""

    uri: str

    @property
    def local_path(self) -> None:
        """Not on this machine."""
        return

    def open(self) -> str:
        """Create the store if it does not exist, and return its id.

        Raises:
            SettingsError: there is no such bucket, it may not be written, it is no store, or the
                service ignores conditions of writes or has no uploads in parts.
            EngineError: S3 does not answer.
        """
        try:
            self._require_bucket()
            self._require_conditions()
            try:
                mark = self.read_bytes(STORE_MARK)
            except DataError:  # a new store
                self._require_parts()
                self.create_bytes(canonical_json({"id": uuid.uuid4().hex}), STORE_MARK)
                mark = self.read_bytes(STORE_MARK)
            return id_in(mark)
        except (DataError, ValueError) as error:
            raise SettingsError(f"store {self.uri} cannot be used: {error}") from error

    def _require_bucket(self) -> None:
        """Refuse a bucket that is not there: some services would make one of a misspelt name."""
        from botocore.exceptions import ClientError

        with self._service("") as (service, place):
            try:
                service.head_bucket(Bucket=place["Bucket"])
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                    raise DataError(
                        f"there is no bucket {place['Bucket']!r} at {service.meta.endpoint_url}. "
                        "Correct the name, or create it."
                    ) from error
                # An answer to HEAD has no body, and so no code that says what is refused.
                service.list_objects_v2(Bucket=place["Bucket"], MaxKeys=1)
                raise

    def _require_conditions(self) -> None:
        """Refuse a service that overwrites what it was asked to overwrite on a condition only.

        On it every holder would get every lease, and statements could be replaced. One that takes
        no condition at all keeps no lease either.
        """
        name = f"{_PROBE}/{uuid.uuid4().hex}"
        tag = self.write_tagged(b"first", None, name)
        ignored = [
            condition
            for condition, expected in {"If-None-Match": None, "If-Match": f'"{"0" * 32}"'}.items()
            if self.write_tagged(b"second", expected, name)
        ]
        problem = ""
        if ignored:
            problem = (
                f"ignores {' and '.join(ignored)} of a write, so that two runs at once would "
                "overwrite each other"
            )
        elif not self.write_tagged(b"third", tag, name):
            problem = "refuses If-Match with the ETag it answered, so that no lease can be renewed"
        self.delete_file(name)
        if problem:
            raise self._unfit(problem)

    def _require_parts(self) -> None:
        """Refuse a service that does not keep an upload in parts, as which large files arrive.

        It would fail at the first checkpoint, hours later. Asked of a new store only, and by the
        client that uploads: one part, as the last may have any size.
        """
        from boto3.s3.transfer import TransferConfig
        from botocore.exceptions import ClientError

        name, payload = f"{_PROBE}/{uuid.uuid4().hex}", b"a part"
        with self._service(name) as (service, place):
            in_parts = TransferConfig(multipart_threshold=1)
            try:
                service.upload_fileobj(io.BytesIO(payload), **place, Config=in_parts)
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] in _NO_PARTS:
                    raise self._unfit(f"refuses uploads in parts ({error})") from error
                raise
        kept = self.read_bytes(name)
        self.delete_file(name)
        if kept != payload:
            raise self._unfit("does not keep what was uploaded in parts")

    def _unfit(self, problem: str) -> SettingsError:
        """Name the service, not the store: every other store of it has the same problem."""
        with self._service("") as (service, _):
            endpoint = service.meta.endpoint_url
        return SettingsError(
            f"the S3 service at {redacted(endpoint)} {problem}. Use another (docs/s3_services.md)."
        )

    def read_bytes(self, name: str = "") -> bytes:
        """Read a small file."""
        with self._service(name) as (service, place):
            return service.get_object(**place)["Body"].read()

    def write_bytes(self, payload: bytes, name: str = "") -> None:
        """Write a small file atomically."""
        with self._service(name) as (service, place):
            service.put_object(**place, Body=payload)

    def create_bytes(self, payload: bytes, name: str = "") -> bool:
        """Write a small file unless it exists."""
        return bool(self.write_tagged(payload, None, name))

    def read_tagged(self, name: str = "") -> tuple[bytes, str]:
        """Read a small file with its ETag, which changes with every write."""
        with self._service(name) as (service, place):
            answer = service.get_object(**place)
            return answer["Body"].read(), answer["ETag"]

    def write_tagged(self, payload: bytes, tag: str | None, name: str = "") -> str:
        """Write a small file if it still has this ETag, or, with None, if it is not there.

        Returns:
            Its new ETag; '' if it was not as expected and nothing was written.
        """
        from botocore.exceptions import ClientError

        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        with self._service(name) as (service, place):
            for attempt in range(_CONFLICTS):
                try:
                    return service.put_object(**place, Body=payload, **condition)["ETag"]
                except ClientError as error:
                    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                    if status == 412 or (status == 404 and tag is not None):
                        return ""
                    if status != 409 or attempt == _CONFLICTS - 1:
                        raise
                time.sleep(0.1 * 2**attempt)
            raise AssertionError("the last attempt returns or raises")

    def upload_file(self, path: Path, name: str = "") -> None:
        """Copy a local file of any size into the store."""
        with self._service(name) as (service, place):
            service.upload_file(str(path), **place)

    def download_file(self, path: Path, name: str = "") -> None:
        """Copy a file of any size to a local path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._service(name) as (service, place):
            service.download_file(**place, Filename=str(path))

    def sha256(self, name: str = "") -> str:
        """Hash a file, streamed."""
        digest = hashlib.sha256()
        with self._service(name) as (service, place):
            for chunk in service.get_object(**place)["Body"].iter_chunks(2**20):
                digest.update(chunk)
        return digest.hexdigest()

    def list_files(self, name: str = "") -> dict[str, int]:
        """Return the files below a prefix by relative name, with their sizes in bytes."""
        return {key: entry["Size"] for key, entry in self._entries(name)}

    def fingerprints(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ETag of files."""
        keys = set(names)
        return {key: entry["ETag"].strip('"') for key, entry in self._entries("") if key in keys}

    def _entries(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        with self._service(name) as (service, place):
            prefix = f"{place['Key']}/" if place["Key"] else ""
            pages = service.get_paginator("list_objects_v2").paginate(
                Bucket=place["Bucket"], Prefix=prefix
            )
            for page in pages:
                for entry in page.get("Contents", []):
                    yield entry["Key"].removeprefix(prefix), entry

    def delete_file(self, name: str = "") -> None:
        """Delete a file if it exists."""
        with self._service(name) as (service, place):
            service.delete_object(**place)

    def delete_folder(self, name: str = "") -> None:
        """Delete everything below a prefix, its manifest first; it need not exist."""
        folder = S3Store(_join(self.uri, name))
        folder.delete_file(MANIFEST)
        for file in folder.list_files():
            folder.delete_file(file)

    @contextmanager
    def _service(self, name: str) -> Iterator[tuple[Any, dict[str, str]]]:
        """Yield a client with bucket and key of a file; its errors become ours and name the uri."""
        import boto3
        from boto3.exceptions import Boto3Error
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        uri = _join(self.uri, name)
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        try:
            with _NEW_CLIENT:
                service = boto3.client("s3", config=Config(**limits()))
            yield service, {"Bucket": bucket, "Key": key.strip("/")}
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise DataError(f"{uri} is gone: {error}") from error
            text = redacted(str(error))
            if error.response["Error"]["Code"] in _REFUSED:
                raise SettingsError(f"{uri}: {text}. Check the credentials of AWS.") from error
            raise EngineError(f"{uri}: {text}") from error
        except NoCredentialsError as error:
            raise SettingsError(f"{uri}: {error}. Set the credentials of AWS.") from error
        except (BotoCoreError, Boto3Error) as error:
            # The address of the endpoint may have credentials in it.
            raise EngineError(f"{uri}: {redacted(str(error))}") from error


def limits() -> dict[str, Any]:
    """Options of botocore for timeouts and attempts; AWS_MAX_ATTEMPTS keeps its meaning."""
    retries: dict[str, Any] = {"mode": "standard"}
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    return {"connect_timeout": CONNECT_S, "read_timeout": READ_S, "retries": retries}


def _join(uri: str, name: str) -> str:
    return f"{uri}/{name}" if name else uri
