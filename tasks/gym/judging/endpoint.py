"""Client of an OpenAI-compatible endpoint: many requests at a time, each with a deadline.

Every request is one POST. Transient failures (connection errors, 429, 5xx) are retried with
exponential backoff and jitter until the request's deadline. A request that still fails gives a
`FailedPrompt`, not a reply. Only errors that the user has to repair are raised.

An endpoint counts as down if it gave no reply to as many requests in a row as run concurrently,
or no sign of life (`life`). Then every call sends one request to see whether it is up again,
unless another call does, and no other. After requests without a reply those that run are cut,
and none is sent before another deadline has passed: nobody waits for a second one.
"""

import http.client
import json
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Generic, TypeVar

from data_schemas.addresses import split_base_url
from tasks.errors import SettingsError
from tasks.gym.judging import life
from tasks.gym.judging.calls import CallCounter
from tasks.gym.judging.protocol import JudgeCalls

_LOG = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_USER_ACTS = {
    401: "the endpoint refuses the API key: set {key}",
    403: "the API key may not use this model: set another {key}",
    404: "no such address or model: give the URL up to /v1, and a name from {address}/models",
}
ReplyT = TypeVar("ReplyT")
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key and the environment variable that it was read from, which errors name."""

    variable: str
    value: str = ""


class ReplyFailure(StrEnum):
    """Why a prompt has no reply."""

    LOST = "no_reply"
    """No complete reply within its deadline."""
    REFUSED = "refused"
    """The endpoint rejects this prompt, or its reply cannot be read; a retry is useless."""
    UNASKED = "unasked"
    """The endpoint counts as down, so that the prompt was not sent."""


@dataclass(frozen=True, slots=True)
class FailedPrompt:
    """A prompt without a reply."""

    loss: ReplyFailure
    cause: str


class _Again(Exception):
    """This attempt failed and may be retried."""


class RejectedRequest(Exception):
    """The endpoint rejected this request, or its reply cannot be read; a retry is useless."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address that requests are sent to."""

    address: str
    """As given, up to /v1, without a trailing slash."""
    secure: bool
    host: str
    port: int | None
    path: str


def read_address(address: str, path: str) -> Endpoint:
    """Parse a base URL, and add a path.

    Raises:
        SettingsError: it is not an http URL.
    """
    try:
        parts = split_base_url(address)
    except ValueError as error:
        raise SettingsError(f"{error}; write http://host:8000/v1") from error
    secure, host = parts.scheme == "https", parts.hostname or ""
    return Endpoint(parts.geturl(), secure, host, parts.port, f"{parts.path}{path}")


@dataclass(frozen=True, slots=True)
class Operation(Generic[ReplyT]):
    """What an endpoint is asked to do."""

    path: str
    """Below the base URL."""
    read: Callable[[bytes], ReplyT]
    """Makes a reply of the body of a response; raises RejectedRequest."""
    most_bytes: int
    """Largest size of a response; a longer one is refused."""


class EndpointClient(Generic[ReplyT]):
    """Sends at most `max_concurrent` requests at a time, over all threads.

    Args:
        address: base URL, up to /v1.
        model: name under which the endpoint serves it.
        operation: that every request asks for.
        key: sent as bearer token.
        timeout_s: of one request, retries and pauses included.
        max_concurrent: requests in flight.
        first_pause_s: before the first retry.

    Raises:
        SettingsError: the address is no base URL, or the key cannot be a header.
    """

    def __init__(
        self,
        address: str,
        model: str,
        operation: Operation[ReplyT],
        *,
        key: ApiKey,
        timeout_s: float,
        max_concurrent: int,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        if not (key.value.isascii() and key.value.isprintable()):
            raise SettingsError(f"{key.variable} has a line break or non-ASCII letter")
        self._endpoint = read_address(address, operation.path)
        self._model = model
        self._operation = operation
        self._key = key
        self._timeout_s = timeout_s
        self._first_pause_s = first_pause_s
        self._pool = ThreadPoolExecutor(max_concurrent, thread_name_prefix="endpoint")
        self._calls = CallCounter()
        self._health = _Health(max_concurrent, timeout_s)
        self._life = life.Life(self._look)

    @property
    def name(self) -> str:
        """Return the model and the address."""
        return f"{self._model} at {self._endpoint.address}"

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far."""
        return self._calls.snapshot

    def send(self, bodies: Sequence[Body]) -> Iterator[tuple[int, ReplyT | FailedPrompt]]:
        """Send all requests concurrently and yield (place, reply) as they finish.

        Args:
            bodies: of the requests, without the name of the model.

        Raises:
            SettingsError: the endpoint refuses the key, the address or the model.
        """
        losses = _Losses()
        places = {
            self._pool.submit(self._answer, body, losses): place
            for place, body in enumerate(bodies)
        }
        missing = 0
        try:
            for future in as_completed(places):
                reply = future.result()
                missing += isinstance(reply, FailedPrompt)
                self._calls.add(asked=1, failed=int(isinstance(reply, FailedPrompt)))
                yield places[future], reply
        finally:
            for future in places:
                future.cancel()
        if missing:
            _LOG.warning(
                "%s gave no reply to %d of %d requests; the last cause: %s",
                *(self.name, missing, len(bodies), losses.cause),
            )

    def close(self) -> None:
        """Stop the threads after the requests in progress have ended."""
        self._pool.shutdown()

    def _answer(self, body: Body, losses: "_Losses") -> ReplyT | FailedPrompt:
        if not self._health.admits(losses):
            losses.cause = losses.cause or self._health.cause
            return FailedPrompt(ReplyFailure.UNASKED, losses.cause)
        if not self._life.back():
            return self._lose(losses, self._life.cause(), ReplyFailure.UNASKED, down=True)
        start = time.monotonic()
        end = start + self._timeout_s
        pause_s = self._first_pause_s
        while True:
            try:
                reply = self._post(body, end - time.monotonic(), start, losses)
            except RejectedRequest as error:
                losses.cause = str(error)
                self._health.note_reply()
                return FailedPrompt(ReplyFailure.REFUSED, str(error))
            except _Again as error:
                wait_s = pause_s * random.uniform(0.5, 1.5)
                if self._life.has_gone(start):
                    return self._lose(losses, f"{self._life.cause()}; {error}", down=True)
                if time.monotonic() + wait_s >= end or self._health.gave_up(losses):
                    return self._lose(losses, str(error))
                time.sleep(wait_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._calls.add(retried=1)
            else:
                self._health.note_reply()
                return reply

    def _lose(
        self,
        losses: "_Losses",
        cause: str,
        loss: ReplyFailure = ReplyFailure.LOST,
        *,
        down: bool = False,
    ) -> FailedPrompt:
        losses.cause = cause
        self._health.note_loss(cause, down=down)
        return FailedPrompt(loss, cause)

    def _look(self) -> bool:
        """True if there is any response; a POST would be computed."""
        try:
            with _connection(self._endpoint, life.LOOK_S, lambda: False) as connection:
                connection.request("HEAD", self._endpoint.path)
                connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _is_given_up(self, losses: "_Losses", start: float) -> bool:
        return self._health.gave_up(losses) or self._life.has_gone(start)

    def _post(self, body: Body, timeout_s: float, start: float, losses: "_Losses") -> ReplyT:
        most, payload = self._operation.most_bytes, json.dumps({"model": self._model, **body})
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self._key.value:
            headers["Authorization"] = f"Bearer {self._key.value}"
        try:
            is_given_up = partial(self._is_given_up, losses, start)
            with _connection(self._endpoint, timeout_s, is_given_up) as connection:
                connection.request("POST", self._endpoint.path, payload, headers)
                response = connection.getresponse()
                self._life.note_response()
                content = response.read(most + 1)
                if response.length and len(content) <= most:
                    raise http.client.IncompleteRead(content, response.length)
        except (OSError, http.client.HTTPException) as error:
            raise _Again(f"{type(error).__name__}: {error}") from error
        if response.status in _USER_ACTS:
            fix = _USER_ACTS[response.status].format(
                address=self._endpoint.address, key=self._key.variable
            )
            raise SettingsError(f"{self.name} answered {response.status}: {fix}")
        if response.status in _PASSING:
            raise _Again(f"status {response.status}")
        if response.status != 200:
            raise RejectedRequest(f"status {response.status}: {content[:200]!r}")
        if len(content) > most:
            raise RejectedRequest(f"more than {most} bytes")
        return self._operation.read(content)


@dataclass(slots=True)
class _Losses:
    """What one call lost."""

    cause: str = ""
    probed: bool = False
    """It has sent a prompt to an endpoint that counts as down."""


class _Health:
    """Consecutive prompts, over all calls, that ended without a reply from the endpoint."""

    def __init__(self, limit: int, pause_s: float) -> None:
        self._lock = threading.Lock()
        self._limit, self._pause_s = limit, pause_s
        self._in_a_row, self._probing = 0, False
        self._paused_until = float("-inf")
        self.cause = ""

    def admits(self, losses: _Losses) -> bool:
        """True if a prompt of this call is to be sent."""
        with self._lock:
            if self._in_a_row < self._limit:
                return True
            paused = time.monotonic() < self._paused_until
            if self._probing or losses.probed or paused:
                return False
            self._probing = losses.probed = True
            return True

    def gave_up(self, losses: _Losses) -> bool:
        """True if a prompt that this call has sent is not to be waited for."""
        return self._in_a_row >= self._limit and not losses.probed

    def note_reply(self) -> None:
        """Note a reply; a refusal of one prompt is one."""
        with self._lock:
            self._in_a_row, self._probing = 0, False

    def note_loss(self, cause: str, *, down: bool = False) -> None:
        """Note a prompt without a reply, or an endpoint that is known to be down."""
        with self._lock:
            self._in_a_row = self._limit if down else self._in_a_row + 1
            self._probing, self.cause = False, cause
            self._paused_until = time.monotonic() + (0.0 if down else self._pause_s)


@contextmanager
def _connection(
    endpoint: Endpoint, timeout_s: float, is_gone: Callable[[], bool]
) -> Iterator[http.client.HTTPConnection]:
    """Open a connection that is cut at its deadline, or when the endpoint is gone.

    A socket's own timeout restarts with every byte, so a slow server could hold a prompt for hours.
    """
    timeout_s = max(timeout_s, 0.001)
    kind = http.client.HTTPSConnection if endpoint.secure else http.client.HTTPConnection
    connection = kind(endpoint.host, endpoint.port, timeout=min(timeout_s, life.LOOK_S))
    end = time.monotonic() + timeout_s
    try:
        connection.connect()
        connection.sock.settimeout(timeout_s)
        over = threading.Event()
        arguments = connection.sock, end, is_gone, over
        watch = threading.Thread(target=_cut_in_time, args=arguments, daemon=True)
        watch.start()
        try:
            yield connection
        finally:
            over.set()
        if time.monotonic() >= end:  # a body cut at the deadline looks complete
            raise TimeoutError(f"no complete reply in {timeout_s:.1f} s")
    finally:
        connection.close()


def _cut_in_time(
    sock: socket.socket, end: float, is_gone: Callable[[], bool], over: threading.Event
) -> None:
    while not over.wait(max(0.0, min(life.TICK_S, end - time.monotonic()))):
        if time.monotonic() >= end or is_gone():
            return _cut(sock)
    return None


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):  # the connection had ended by itself
        sock.shutdown(socket.SHUT_RDWR)
