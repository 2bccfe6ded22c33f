"""What S3 answers, and does not."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from moto.s3.models import FakeMultipart
from moto.s3.responses import S3Response
from werkzeug.datastructures import Headers

from tasks.errors import EngineError, SettingsError
from tasks.store import s3
from tasks.store.s3 import S3Store, limits


def test_a_bucket_that_is_not_there_is_a_settings_error(bucket):
    with pytest.raises(SettingsError, match="s3://nowhere/x cannot be used"):
        S3Store("s3://nowhere/x").open()


def test_what_lies_under_the_mark_of_a_store_must_be_one(bucket):
    bucket.put_object(Bucket="bucket", Key="store/store.json", Body=b"{")

    with pytest.raises(SettingsError, match="s3://bucket/store cannot be used"):
        S3Store("s3://bucket/store").open()


def test_no_answer_from_s3_may_be_tried_again(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "testing")

    with pytest.raises(EngineError, match="s3://bucket/a"):
        S3Store("s3://bucket").read_bytes("a")
    with pytest.raises(EngineError, match="s3://bucket/store"):
        S3Store("s3://bucket/store").open()


def test_an_s3_that_accepts_connections_and_never_answers_is_named_within_its_limits(
    monkeypatch, silent_server
):
    monkeypatch.setattr(s3, "READ_S", 0.1)
    monkeypatch.setattr(s3, "ATTEMPTS", 2)
    monkeypatch.setenv("AWS_ENDPOINT_URL", silent_server)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "testing")

    with pytest.raises(EngineError, match=r"s3://bucket/a: Read timeout on endpoint URL"):
        S3Store("s3://bucket").read_bytes("a")


def test_the_limits_of_s3_fit_into_a_minute(monkeypatch):
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    chosen = limits()

    seconds = chosen["connect_timeout"] + chosen["read_timeout"]
    assert 60.0 == chosen["retries"]["total_max_attempts"] * seconds

    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "7")
    assert {"mode": "standard"} == limits()["retries"]


def test_missing_credentials_are_the_users_to_set(bucket):
    with (
        pytest.raises(SettingsError, match="Set the credentials of AWS"),
        S3Store("s3://bucket")._service("a"),
    ):
        raise NoCredentialsError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDenied", SettingsError),
        ("InvalidAccessKeyId", SettingsError),
        ("ExpiredToken", EngineError),
        ("RequestTimeTooSkewed", EngineError),
    ],
)
def test_a_refusal_by_s3_is_tried_again_only_if_that_may_help(bucket, code, kind):
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    with pytest.raises(kind, match=code), S3Store("s3://bucket")._service("a"):
        raise ClientError(answer, "GetObject")


def test_a_refusal_without_a_body_is_not_taken_for_an_outage(monkeypatch):
    class Refusing(BaseHTTPRequestHandler):
        """Refuses a signature; as HTTP wants it, an answer to HEAD says no more than 403."""

        def do_HEAD(self):
            self.send_response(403)
            self.end_headers()

        def do_GET(self):
            self.do_HEAD()
            self.wfile.write(b"<Error><Code>SignatureDoesNotMatch</Code></Error>")

        def log_message(self, format, *args):
            pass

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "testing")
    boto3.setup_default_session()
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(SettingsError, match="SignatureDoesNotMatch"):
            S3Store("s3://bucket/store").open()
        server.shutdown()


def test_a_whole_bucket_is_a_store(bucket):
    store = S3Store("s3://bucket")
    store.write_bytes(b"abc", "sub/a")

    assert {"sub/a": 3} == store.list_files()
    assert b"abc" == bucket.get_object(Bucket="bucket", Key="sub/a")["Body"].read()


def test_a_store_in_a_service_that_ignores_conditions_is_refused_by_address(bucket, monkeypatch):
    put = S3Response.put_object

    def unconditional(self):
        kept = [one for one in self.headers.items() if one[0] not in ("If-None-Match", "If-Match")]
        self.headers = Headers(kept)
        return put(self)

    S3Store("s3://bucket/store").open()
    before = bucket.get_object(Bucket="bucket", Key="store/store.json")["Body"].read()
    monkeypatch.setattr(S3Response, "put_object", unconditional)

    with pytest.raises(SettingsError, match=r"at https?://\S+ ignores If-None-Match and If-Match"):
        S3Store("s3://bucket/store").open()
    assert before == bucket.get_object(Bucket="bucket", Key="store/store.json")["Body"].read()


def test_a_service_that_refuses_the_tag_it_gave_is_refused_by_address(bucket, monkeypatch):
    """Ceph 16 compares If-Match with the bare digest, and answers 412 to a tag in quotes."""
    put = S3Response.put_object

    def compares_without_quotes(self):
        named = [(key, value.replace('"', "'")) for key, value in self.headers.items()]
        self.headers = Headers(named)
        return put(self)

    monkeypatch.setattr(S3Response, "put_object", compares_without_quotes)

    with pytest.raises(SettingsError, match=r"at https?://\S+ refuses If-Match with the ETag it"):
        S3Store("s3://bucket/store").open()
    assert not S3Store("s3://bucket/store").list_files()


def test_a_probe_leaves_nothing(bucket):
    S3Store("s3://bucket/store").open()

    assert {"store.json"} == set(S3Store("s3://bucket/store").list_files())
    assert not bucket.list_multipart_uploads(Bucket="bucket").get("Uploads")


@pytest.mark.parametrize("status", [400, 404, 405, 501])
def test_a_service_without_uploads_in_parts_is_refused_by_address_before_it_holds_a_store(
    bucket, monkeypatch, status
):
    def refuse(self, *arguments, **named):
        return status, {}, "<Error><Code>NotImplemented</Code></Error>"

    monkeypatch.setattr(S3Response, "_key_response_post", refuse)

    with pytest.raises(SettingsError, match=r"at https?://\S+ refuses uploads in parts .*NotImpl"):
        S3Store("s3://bucket/store").open()
    assert not S3Store("s3://bucket/store").list_files()


def test_a_service_that_loses_a_part_is_refused_by_address(bucket, monkeypatch):
    monkeypatch.setattr(FakeMultipart, "complete", lambda self, body: (b"", self.id, None))

    with pytest.raises(SettingsError, match=r"at https?://\S+ does not keep what was uploaded in"):
        S3Store("s3://bucket/store").open()
    assert not S3Store("s3://bucket/store").list_files()


def test_uploads_in_parts_are_asked_for_when_a_store_is_new(bucket, monkeypatch):
    S3Store("s3://bucket/store").open()
    monkeypatch.setattr(S3Response, "_key_response_post", None)

    assert S3Store("s3://bucket/store").open()
