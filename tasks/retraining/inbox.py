"""List an inbox: a folder on disk or a prefix in S3.

Endpoint and credentials are boto3's own (AWS_ENDPOINT_URL, ...).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from data_schemas.intake import InboxFile
from tasks.errors import EngineError, SettingsError
from tasks.store.interface import store_at

_PARTIAL = (".tmp", ".part", ".partial", ".crdownload", ".filepart", "~")
"""Names that tools give to what they are still writing."""


def list_files(inbox: str) -> list[InboxFile]:
    """List all files below the inbox by key; hidden, partial and empty ones are not there yet.

    Raises:
        SettingsError: there is no such folder or bucket, or it may not be read.
        EngineError: S3 does not answer.
    """
    is_local = store_at(inbox).local_path is not None
    entries = _local_entries(inbox) if is_local else _s3_entries(inbox)
    return sorted((file for file in entries if _is_ready(file)), key=lambda file: file.key)


def fetch(file: InboxFile, target: Path) -> None:
    """Copy a listed file to the local disk.

    Raises:
        SettingsError: it is gone or may not be read.
        EngineError: S3 does not answer.
    """
    if store_at(file.uri).local_path is not None:
        try:
            shutil.copyfile(file.uri, target)
        except OSError as error:
            raise SettingsError(f"{file.uri} cannot be read: {error.strerror}") from error
        return
    bucket, _, key = file.uri.removeprefix("s3://").partition("/")
    with _service(file.uri) as service:
        service.download_file(bucket, key, str(target))


def _is_ready(file: InboxFile) -> bool:
    path = PurePosixPath(file.key)
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and not path.name.endswith(_PARTIAL) and file.bytes > 0


def _local_entries(inbox: str) -> Iterator[InboxFile]:
    folder = Path(inbox).expanduser().resolve()
    if not folder.is_dir():
        raise SettingsError(f"inbox {folder} is not a folder. Create it or set inbox to another.")
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        status = path.stat()
        yield InboxFile(
            key=path.relative_to(folder).as_posix(),
            uri=str(path),
            # The inode's time as well: a copied or moved file keeps its old modification time,
            # and it has to count from when it arrived.
            modified=max(status.st_mtime, status.st_ctime),
            bytes=status.st_size,
            fingerprint=f"{status.st_size}-{status.st_mtime_ns}",
        )


def _s3_entries(inbox: str) -> Iterator[InboxFile]:
    bucket, _, prefix = inbox.removeprefix("s3://").partition("/")
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    with _service(inbox) as service:
        pages = service.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for page in pages:
            for entry in page.get("Contents", []):
                key = entry["Key"].removeprefix(prefix)
                if not key or key.endswith("/"):
                    continue  # a folder mark
                yield InboxFile(
                    key=key,
                    uri=f"s3://{bucket}/{entry['Key']}",
                    modified=entry["LastModified"].timestamp(),
                    bytes=entry["Size"],
                    fingerprint=entry["ETag"].strip('"'),
                )


@contextmanager
def _service(uri: str) -> Iterator[Any]:
    """Yield a client; its failures become ours, naming the uri."""
    import boto3
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield boto3.client("s3")
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404):
            raise SettingsError(
                f"{uri} is not there or may not be read: {error}. "
                "Set inbox to a readable s3://bucket/prefix."
            ) from error
        raise EngineError(f"{uri}: {error}") from error
    except NoCredentialsError as error:
        raise SettingsError(f"{uri}: {error}. Set AWS credentials.") from error
    except (BotoCoreError, Boto3Error) as error:
        raise EngineError(f"{uri}: {error}") from error
