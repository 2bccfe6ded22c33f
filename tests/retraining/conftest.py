"""An inbox that needs no network."""

import boto3
import pytest
from moto import mock_aws


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket named 'drop'."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="drop")
        yield client
