"""An S3 that refuses, answers twice, lies, or keeps nothing: each is survived or named.

The service stands behind a proxy that does the harm, as a broken gateway would.
"""

import threading
import uuid
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tasks.errors import DataError, EngineError, TamperError
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tasks.store.objects import localise, publish
from tests.buckets import use_test_account

pytestmark = pytest.mark.attack


class Proxy(BaseHTTPRequestHandler):
    """Forwards requests to the service, and harms those of the harm that was chosen."""

    protocol_version = "HTTP/1.1"
    service = ("", 0)
    harm = ""
    seen: Counter[str]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen[f"{self.command} {self.path}"] += 1
        is_first = self.seen[f"{self.command} {self.path}"] == 1
        if self.harm == "refuses" or (self.harm == "refuses once" and is_first):
            self.answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        if self.harm == "keeps nothing" and self.command == "PUT":
            self.answer(200, {"ETag": '"0"'}, b"")
            return
        status, headers, payload = self.ask(body)
        if self.harm == "answers twice":
            status, headers, payload = self.ask(body)
        if self.harm == "lies" and self.command == "GET" and self.path.endswith("/b.bin"):
            headers = {name: one for name, one in headers.items() if "checksum" not in name.lower()}
            payload = payload[:-1] + b"?"
        self.answer(status, headers, payload)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = forward

    def ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(*self.service)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    def answer(self, status: int, headers: dict[str, str], payload: bytes) -> None:
        self.send_response(status)
        length = headers.get("Content-Length") if self.command == "HEAD" else str(len(payload))
        kept = {"content-length", "transfer-encoding", "connection", "date", "server"}
        for name, value in headers.items():
            if name.lower() not in kept:
                self.send_header(name, value)
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)


@pytest.fixture(scope="module")
def service():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture
def place(service, monkeypatch):
    """A store in a bucket of its own, behind a proxy, and the class that chooses the harm."""
    use_test_account(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*service))
    bucket = f"bucket-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    handler = type("Harmful", (Proxy,), {"service": service, "seen": Counter()})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_port}")
    yield f"s3://{bucket}/store", handler
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture
def made(tmp_path):
    with new_object(tmp_path / "here") as (folder, committed):
        (folder / "b.bin").write_bytes(b"x" * 100)
    return committed


@pytest.mark.parametrize("harm", ["refuses once", "answers twice"])
def test_what_is_tried_or_answered_twice_is_there_once(place, made, tmp_path, harm):
    store, handler = place
    handler.harm = harm
    identity = store_at(store).open()
    uri = publish(Path(made.uri), made.digest, store)
    first = store_at(f"{store}/statements").create_bytes(b"one", "a.json")
    second = store_at(f"{store}/statements").create_bytes(b"two", "a.json")

    assert identity == store_at(store).open()
    assert b"x" * 100 == (localise(uri, made.digest, tmp_path / "cache") / "b.bin").read_bytes()
    # A retry of a write that had arrived looks as if somebody else had written it first.
    assert (harm != "answers twice", False) == (first, second)
    assert b"one" == store_at(f"{store}/statements").read_bytes("a.json")


def test_a_service_that_refuses_everything_is_named_and_may_be_tried_again(place, monkeypatch):
    store, handler = place
    handler.harm = "refuses"
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")

    with pytest.raises(EngineError, match=r"/store: .*SlowDown"):
        store_at(store).open()
    assert {2} == set(handler.seen.values())


def test_bytes_that_are_not_those_that_were_kept_are_refused_by_file(place, made, tmp_path):
    store, handler = place
    uri = publish(Path(made.uri), made.digest, store)
    handler.harm = "lies"

    with pytest.raises((TamperError, EngineError), match=r"b\.bin"):
        localise(uri, made.digest, tmp_path / "cache")
    assert not (tmp_path / "cache" / "objects" / made.digest[:16]).exists()


def test_an_object_that_was_taken_and_not_kept_is_named_by_its_next_reader(place, made, tmp_path):
    store, handler = place
    handler.harm = "keeps nothing"
    uri = publish(Path(made.uri), made.digest, store)

    with pytest.raises(DataError, match=r"objects/.*MANIFEST\.json is gone"):
        localise(uri, made.digest, tmp_path / "cache")
