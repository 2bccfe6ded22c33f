"""HTTP endpoint of the verifiers, for trainers that run as other programs.

    POST /v1/score  {"rows": [ScoreRow, ...]}  ->  {"verdicts": [{score, reason, detail}, ...]}
    GET  /health                               ->  {"status": "ok", "verifiers": [...]}
    GET  /openapi.json                         ->  what may be sent, and what is answered

Verdicts are those of the scoring service, in the order of the rows. Errors are JSON as well:
{"error": {"code": ..., "message": ...}}. There are limits on the size of a body, on the time in
which it must arrive, on the rows per request, on the requests that are scored concurrently (others
wait) and on connections. Listening outside of the loopback interface requires a token.

`listen` is the server without verifiers, which `eachprompt chat --serve` uses as well.
"""

import hmac
import ipaddress
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from string import ascii_lowercase
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.json_schema import models_json_schema

from data_schemas.frozen_model import FrozenModel
from data_schemas.rollouts import ScoreRow
from data_schemas.rows import LanguageTag, is_language_tag, language_tag
from data_schemas.verdicts import Verdict
from tasks.errors import EngineError, SettingsError
from tasks.gym.scoring.service import ScoringService

Body = TypeVar("Body", bound=BaseModel)
_LOG = logging.getLogger(__name__)
MAX_ROWS = 4096
IDLE_S = 60.0
"""A connection that sends nothing for this long is closed."""
CHUNK = 2**16
LINGER_S = 2.0
"""Time in which the rest of a refused request is discarded: closing a connection with unread data
would take the reply away from the client."""
MAX_DIGITS = 18
"""Digits of a Content-Length; Python refuses to parse numbers of thousands of digits."""


class ScoreRequest(FrozenModel):
    """Body of a request."""

    rows: tuple[ScoreRow, ...] = Field(max_length=MAX_ROWS)


class ScoreReply(BaseModel):
    """Body of a reply."""

    verdicts: tuple[Verdict, ...]


class Failure(BaseModel):
    """What a request is answered with instead of a result."""

    code: str
    message: str


class FailureReply(BaseModel):
    """Body of such a reply."""

    error: Failure


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on requests."""

    body_bytes: int = 64 * 2**20
    body_s: float = 60.0
    """Time in which a body must arrive."""
    requests: int = 32
    """Bodies that are answered concurrently; further ones wait."""
    connections: int = 512
    """Open connections; further ones are refused with 503."""
    token: str = ""
    """Bearer token; not required if empty."""


@dataclass(frozen=True, slots=True)
class Route:
    """What answers a method of a path."""

    reply: Callable[[bytes], bytes]
    """JSON from a body, which a GET has not."""
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    """None = an object of JSON."""


Routes = Mapping[tuple[str, str], Route]
"""By method and path."""


class RequestRefusal(Exception):
    """What a request is answered with instead of a result."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def open_endpoint(
    scorer: ScoringService, verifiers: list[str], host: str, port: int, limits: RequestLimits
) -> ThreadingHTTPServer:
    """Bind the address of the verifiers' endpoint, as `listen` does."""
    health = _json({"status": "ok", "verifiers": verifiers})
    body = _request_with(verifiers)
    routes: Routes = {
        ("POST", "/v1/score"): Route(lambda body: _scored(scorer, body), body, ScoreReply),
        ("GET", "/health"): Route(lambda _: health),
    }
    return listen(routes, host, port, limits)


def _request_with(verifiers: list[str]) -> type[BaseModel]:
    """Return the body of a request as the document has it: with what there is to be named.

    These are the verifiers, and the languages of two letters. A withdrawn code, for which there is
    another one, is accepted and not documented.
    """
    named = Annotated[str, Field(json_schema_extra={"enum": list(verifiers)})]
    tag = Annotated[LanguageTag, Field(json_schema_extra={"pattern": _tag_pattern()})]
    row = create_model("ScoreRow", __base__=ScoreRow, verifier=(named, ...), language=(tag, "en"))
    rows = Annotated[tuple[row, ...], Field(max_length=MAX_ROWS)]
    return create_model("ScoreRequest", __base__=ScoreRequest, rows=(rows, ...))


def _tag_pattern() -> str:
    """Return what a tag matches whose language exists, in either case."""
    pairs = (first + second for first, second in product(ascii_lowercase, repeat=2))
    current = (code for code in pairs if is_language_tag(code) and language_tag(code) == code)
    codes = "|".join(f"[{a}{a.upper()}][{b}{b.upper()}]" for a, b in current)
    return f"^([A-Za-z]{{3}}|{codes})(-[A-Za-z0-9]{{1,8}})*$"


def listen(routes: Routes, host: str, port: int, limits: RequestLimits) -> ThreadingHTTPServer:
    """Bind the address; the caller serves requests and closes the server.

    Raises:
        SettingsError: the address is outside of the loopback interface and no token is set, or the
            address cannot be bound.
    """
    if not limits.token and not _is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines and no token is set. "
            "Set EACHPROMPT_REWARDS_TOKEN, or listen on 127.0.0.1."
        )
    document = _json(open_api(routes))
    routes = {**routes, ("GET", "/openapi.json"): Route(lambda _: document)}
    places = threading.BoundedSemaphore(limits.requests)
    connections = threading.BoundedSemaphore(limits.connections)
    paths = " or ".join(map(" ".join, routes))
    is_local = _is_loopback(host)

    class Handler(_Handler):
        def allowed(self) -> str:
            return ", ".join(method for method, path in routes if path == self.path)

        def handle(self) -> None:
            if not connections.acquire(blocking=False):
                self.refuse_connection()
                return
            try:
                super().handle()
            finally:
                connections.release()

        def answer(self, method: str) -> bytes:
            self.refuse_other_sites(is_local=is_local)
            if (method, self.path) not in routes:
                raise _no_route(paths, self.allowed())
            reply = routes[method, self.path].reply
            if method == "GET":
                # A body that nobody reads would be the next request of the connection.
                if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
                    self.close_connection = True
                return reply(b"")
            self.authorise(limits.token)
            self.require_json()
            body = self.body(limits.body_bytes, limits.body_s)
            with places:
                return reply(body)

    try:
        return _Server((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"cannot listen on {host}:{port}: {error}") from error


def _no_route(paths: str, allowed: str) -> RequestRefusal:
    status = HTTPStatus.METHOD_NOT_ALLOWED if allowed else HTTPStatus.NOT_FOUND
    return RequestRefusal(status, status.name.lower(), paths)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a failed connection; one that the client has closed is nothing to report."""
        error = sys.exception()
        level = logging.DEBUG if isinstance(error, ConnectionError) else logging.ERROR
        _LOG.log(level, "connection from %s failed", client_address, exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def answer(self, method: str) -> bytes:
        """Answer one request."""
        raise NotImplementedError

    def allowed(self) -> str:
        """Return the methods of the path that was asked for; '' if there is no such path."""
        raise NotImplementedError

    def handle_one_request(self) -> None:
        """Read a request whose head arrives in time as a whole, and answer it.

        The timeout of a socket is for the next byte only: a client that drips would stay for ever.
        """
        self._head = threading.Timer(IDLE_S, self._hang_up)
        self._head.daemon = True
        self._head.start()
        try:
            super().handle_one_request()
        finally:
            self._head.cancel()

    def parse_request(self) -> bool:
        """Read the head of a request."""
        try:
            return super().parse_request()
        finally:
            self._head.cancel()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Answer a GET."""
        self._reply("GET")

    def do_POST(self) -> None:
        """Answer a POST."""
        self._reply("POST")

    def authorise(self, token: str) -> None:
        """Refuse a request without the token."""
        entry = self.headers.get("Authorization", "")
        if token and not hmac.compare_digest(entry.encode(), f"Bearer {token}".encode()):
            raise RequestRefusal(
                HTTPStatus.UNAUTHORIZED, "unauthorized", "bearer token missing or wrong"
            )

    def refuse_other_sites(self, *, is_local: bool) -> None:
        """Refuse what a page of another site sends, also by a name of its own for this machine."""
        hosts: list[str] = self.headers.get_all("Host", [])
        if is_local and not all(_is_loopback(_host_of(f"//{one}")) for one in hosts):
            raise RequestRefusal(
                HTTPStatus.FORBIDDEN, "foreign_host", f"{hosts[0]!r:.100} is not this host"
            )
        for origin in self.headers.get_all("Origin", []):
            if origin.partition("://")[2] not in hosts:
                raise RequestRefusal(HTTPStatus.FORBIDDEN, "foreign_origin", f"{origin!r:.100}")

    def require_json(self) -> None:
        """Refuse a body of another type: a page may send text anywhere."""
        if self.headers.get_content_type() != "application/json":
            message = "send Content-Type: application/json"
            raise RequestRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not_json", message)

    def body(self, limit: int, limit_s: float) -> bytes:
        """Read the body if its length is given and within the limit, and it arrives in time.

        Raises:
            ConnectionError: the client has closed the connection.
        """
        lengths: list[str] = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 else ""
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            message = "send one Content-Length, and no Transfer-Encoding"
            raise RequestRefusal(HTTPStatus.LENGTH_REQUIRED, "length_required", message)
        if len(length) > MAX_DIGITS or int(length) > limit:
            message = f"{length[:MAX_DIGITS]} bytes, at most {limit}"
            raise RequestRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", message)
        deadline = time.monotonic() + limit_s
        body = bytearray()
        while len(body) < int(length):
            remaining_s = deadline - time.monotonic()
            try:
                self.connection.settimeout(max(remaining_s, 0.001))
                received = self.rfile.read1(min(CHUNK, int(length) - len(body)))
            except TimeoutError as error:
                message = f"{len(body)} of {length} bytes in {limit_s} s"
                raise RequestRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", message) from error
            if not received:
                raise ConnectionError(f"closed after {len(body)} of {length} bytes")
            body += received
        self.connection.settimeout(self.timeout)
        return bytes(body)

    def refuse_connection(self) -> None:
        """Answer 503 without reading a request."""
        self.requestline = ""
        self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again later")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not HTTP, or not supported, in JSON as well."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:  # a method that no path here has
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        self.request_version = self.protocol_version  # HTTP/0.9 has no status line
        text = message or explain or status.phrase
        self._send(status, _error(status.name.lower(), text))
        self._discard()

    def _discard(self) -> None:
        """Read what the client still sends, for a limited time."""
        deadline = time.monotonic() + LINGER_S
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while (remaining_s := deadline - time.monotonic()) > 0:
                self.connection.settimeout(remaining_s)
                if not self.connection.recv(CHUNK):
                    break

    def log_message(self, format: str, *args: object) -> None:
        """Log at DEBUG level; responses are not logged."""
        _LOG.debug(format, *args)

    def _reply(self, method: str) -> None:
        try:
            status, payload = HTTPStatus.OK, self.answer(method)
        except RequestRefusal as refusal:
            status, payload = refusal.status, _error(refusal.code, refusal.message)
            self.close_connection = True  # the connection may still have an unread body
            self._send(status, payload)
            self._discard()
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: a client gets an answer
            _LOG.error("%s %s failed", method, self.path, exc_info=error)
            self.close_connection = True
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            self._send(status, _error("internal_error", "see the log of the server"))
        else:
            self._send(status, payload)

    def _send(self, status: HTTPStatus, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", self.allowed())
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if not self.requestline.startswith("HEAD "):
            self.wfile.write(payload)


def open_api(routes: Routes) -> dict[str, object]:
    """Describe routes as OpenAPI 3.1 does, so that any tool can make requests of it."""
    models = {one for route in routes.values() for one in (route.body, route.answer) if one}
    place = "#/components/schemas/{model}"
    named, defined = models_json_schema(
        [(one, "validation") for one in (*models, FailureReply)], ref_template=place
    )
    schemas = {one: schema for (one, _), schema in named.items()}

    def content(kind: type[BaseModel] | None) -> dict[str, object]:
        schema = schemas[kind] if kind else {"type": "object"}
        return {"content": {"application/json": {"schema": schema}}}

    paths: dict[str, dict[str, object]] = {}
    for (method, path), route in routes.items():
        responses = {
            "200": {"description": "the result", **content(route.answer)},
            "default": {"description": "what was wrong", **content(FailureReply)},
        }
        operation: dict[str, object] = {"responses": responses}
        if route.body:
            operation["requestBody"] = {"required": True, **content(route.body)}
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "EachPrompt", "version": "1"},
        "paths": paths,
        "components": {"schemas": defined["$defs"]},
    }


def request_of(body: bytes, kind: type[Body]) -> Body:
    """Read the body of a request.

    Raises:
        Refusal: names the field.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise bad_request(f"{where}: {first['msg']}") from error


def bad_request(message: str) -> RequestRefusal:
    """Refuse what was asked."""
    return RequestRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", message)


def _scored(scorer: ScoringService, body: bytes) -> bytes:
    request = request_of(body, ScoreRequest)
    problems = [row.problem(place) for place, row in enumerate(request.rows)]
    try:
        verdicts = scorer.score(problems, [row.response for row in request.rows])
    except SettingsError as error:
        raise bad_request(str(error)) from error
    except EngineError as error:
        _LOG.warning("no verdicts: %s", error)
        raise RequestRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "engine_error", str(error)) from error
    return ScoreReply(verdicts=tuple(verdicts)).model_dump_json().encode()


def _error(code: str, message: str) -> bytes:
    return _json({"error": {"code": code, "message": message}})


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _host_of(uri: str) -> str:
    try:
        parts = urlsplit(uri)
        return "" if "@" in parts.netloc else parts.hostname or ""
    except ValueError:  # brackets that are no IPv6 address
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
