"""A bucket that needs no network, on a service that answers one request at a time.

With EACHPROMPT_TEST_S3 it is the bucket `bucket` at that address instead, for which AWS_* have the
credentials; it has to be empty, or not there.

moto drops the bytes of an object that one thread overwrites while another reads it, where S3
returns the old or the new ones. The lock around its answers gives what S3 promises.
"""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import boto3
import botocore.session
import pytest
from moto import mock_aws
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

BUCKET = "bucket"
_ONE_AT_A_TIME = threading.RLock()
# moto ends the session of boto3 with every test, and the next one would read botocore's description
# of S3 anew: half of the CPU time that a bucket takes.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)


def _locked(answer: Callable) -> Callable:
    @functools.wraps(answer)
    def one_at_a_time(*arguments: object, **named: object) -> object:
        with _ONE_AT_A_TIME:
            return answer(*arguments, **named)

    return one_at_a_time


def use_test_account(patch: pytest.MonkeyPatch) -> None:
    """Let every client of this process be nobody's, and moto answer one request at a time."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "testing")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("ambiguous_response", "bucket_response", "key_response"):
        patch.setattr(S3Response, name, _locked(getattr(S3Response, name)))


@contextmanager
def served_bucket(patch: pytest.MonkeyPatch, name: str = BUCKET) -> Iterator[None]:
    """An empty bucket in an S3 that several processes reach."""
    use_test_account(patch)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    boto3.client("s3").create_bucket(Bucket=name)
    yield
    server.stop()


@contextmanager
def empty_bucket(patch: pytest.MonkeyPatch) -> Iterator:
    """Yield a client of an S3 that holds one empty bucket, 'bucket'."""
    if endpoint := os.environ.get("EACHPROMPT_TEST_S3"):
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        boto3.setup_default_session()  # a session reads the variables once
        client = boto3.client("s3")
        if BUCKET not in {one["Name"] for one in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=BUCKET)
        assert 0 == len(client.list_objects_v2(Bucket=BUCKET).get("Contents", [])), (
            "it is somebody else's"
        )
        yield client
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for entry in page.get("Contents", []):
                client.delete_object(Bucket=BUCKET, Key=entry["Key"])
        return
    use_test_account(patch)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client
