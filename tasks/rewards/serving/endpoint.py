"""HTTP endpoint of the verifiers, for trainers that run as other programs.

    POST /v1/score  {"rows": [ScoreRow, ...]}  ->  {"verdicts": [{score, reason, detail}, ...]}
    GET  /health                               ->  {"status": "ok", "verifiers": [...]}

Verdicts are those of the scoring service, in the order of the rows. Errors are JSON as well:
{"error": {"code": ..., "message": ...}}. The size of a body, the rows per request and the number of
concurrent requests are limited. Listening outside of the loopback interface requires a token.
"""

import hmac
import ipaddress
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data_schemas.scoring import ScoreRow
from data_schemas.verdicts import Verdict
from tasks.errors import EngineError, SettingsError
from tasks.rewards.scoring.service import ScoringService

_LOG = logging.getLogger(__name__)
MAX_ROWS = 4096
IDLE_S = 60.0
"""A connection that sends nothing for this long is closed."""


class ScoreRequest(BaseModel):
    """Body of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[ScoreRow, ...] = Field(max_length=MAX_ROWS)


class ScoreReply(BaseModel):
    """Body of a reply."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests."""

    body_bytes: int = 64 * 2**20
    requests: int = 32
    """Concurrent requests; further ones are refused with 503."""
    token: str = ""
    """Bearer token; not required if empty."""


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def open_endpoint(
    scorer: ScoringService, verifiers: list[str], host: str, port: int, limits: Limits
) -> ThreadingHTTPServer:
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
    places = threading.BoundedSemaphore(limits.requests)

    class Handler(_Handler):
        def answer(self, method: str) -> tuple[HTTPStatus, bytes]:
            if (method, self.path) == ("GET", "/health"):
                return HTTPStatus.OK, _json({"status": "ok", "verifiers": verifiers})
            if (method, self.path) != ("POST", "/v1/score"):
                raise _Refusal(HTTPStatus.NOT_FOUND, "not_found", "POST /v1/score or GET /health")
            self.authorise(limits.token)
            with _place(places):
                request = _request(self.body(limits.body_bytes))
                return HTTPStatus.OK, _scored(scorer, request).model_dump_json().encode()

    try:
        return _Server((host, port), Handler)
    except OSError as error:
        raise SettingsError(f"cannot listen on {host}:{port}: {error}") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def answer(self, method: str) -> tuple[HTTPStatus, bytes]:
        """Answer one request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer a GET."""
        self._reply("GET")

    def do_POST(self) -> None:
        """Answer a POST."""
        self._reply("POST")

    def authorise(self, token: str) -> None:
        """Refuse a request without the token."""
        given = self.headers.get("Authorization", "")
        if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise _Refusal(HTTPStatus.UNAUTHORIZED, "unauthorized", "bearer token missing or wrong")

    def body(self, limit: int) -> bytes:
        """Read the body if its length is given and within the limit."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "length_required", "send Content-Length")
        if int(length) > limit:
            message = f"{length} bytes, at most {limit}"
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", message)
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: object) -> None:
        """Log at DEBUG level; responses are not logged."""
        _LOG.debug(format, *args)

    def _reply(self, method: str) -> None:
        try:
            status, payload = self.answer(method)
        except _Refusal as refusal:
            status, payload = refusal.status, _error(refusal.code, refusal.message)
            self.close_connection = True  # the connection may still have an unread body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(payload)


@contextmanager
def _place(places: threading.BoundedSemaphore) -> Iterator[None]:
    if not places.acquire(blocking=False):
        message = "too many concurrent requests; try again, or send larger batches"
        raise _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message)
    try:
        yield
    finally:
        places.release()


def _request(body: bytes) -> ScoreRequest:
    try:
        return ScoreRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        message = f"{where}: {first['msg']}"
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", message) from error


def _scored(scorer: ScoringService, request: ScoreRequest) -> ScoreReply:
    problems = [row.problem(place) for place, row in enumerate(request.rows)]
    try:
        verdicts = scorer.score(problems, [row.response for row in request.rows])
    except SettingsError as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", str(error)) from error
    except EngineError as error:
        _LOG.warning("no verdicts: %s", error)
        raise _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "engine_error", str(error)) from error
    return ScoreReply(verdicts=tuple(verdicts))


def _error(code: str, message: str) -> bytes:
    return _json({"error": {"code": code, "message": message}})


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
