"""A judge behind an OpenAI-compatible endpoint, such as `vllm serve`.

Every prompt is one POST to {base}/chat/completions at temperature 0. Transient failures (connection
errors, 429, 5xx, timeouts) are retried with exponential backoff and jitter until the prompt's
deadline. A prompt that still fails returns None. Only errors that the user has to repair are
raised.
"""

import http.client
import json
import logging
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from data_schemas.addresses import split_base_url
from data_schemas.prompts import Message
from tasks.errors import SettingsError
from tasks.rewards.judging.calls import Calls
from tasks.rewards.judging.protocol import JudgeCalls

_LOG = logging.getLogger(__name__)

MAX_CONCURRENT = 16
MAX_REPLY_TOKENS = 4096
"""A distilled reasoning judge generates 1,000 to 3,000 thinking tokens before its JSON."""
MAX_BODY_BYTES = 2**19
"""Eight times the time that so many tokens take."""
DEADLINE_CALLS = 2.0
"""A prompt may take this many times the time of one call, pauses included."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_USER_ACTS = {
    401: "the endpoint refuses the API key: set EACHPROMPT_JUDGE_API_KEY",
    403: "the API key may not use this model: set another EACHPROMPT_JUDGE_API_KEY",
    404: "no such address or model: set judge.address to the URL up to /v1 and judge.model to a "
    "name from {address}/models",
}


class _Again(Exception):
    """This attempt failed and may be retried."""


class _Refused(Exception):
    """The endpoint rejected this prompt; a retry is useless."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address that requests are sent to."""

    address: str
    """As given, up to /v1, without a trailing slash."""
    secure: bool
    host: str
    port: int | None
    path: str


def read_address(address: str) -> Endpoint:
    """Parse a base URL.

    Raises:
        SettingsError: it is not an http URL.
    """
    try:
        parts = split_base_url(address)
    except ValueError as error:
        raise SettingsError(f"judge.address {error}; write http://host:8000/v1") from error
    path = f"{parts.path}/chat/completions"
    return Endpoint(parts.geturl(), parts.scheme == "https", parts.hostname or "", parts.port, path)


class HttpJudge:
    """A Judge that sends at most `max_concurrent` prompts at a time, over all threads."""

    def __init__(
        self,
        address: str,
        model: str,
        *,
        api_key: str = "",
        timeout_s: float = 60.0,
        max_concurrent: int = MAX_CONCURRENT,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        if not (api_key.isascii() and api_key.isprintable()):
            raise SettingsError("EACHPROMPT_JUDGE_API_KEY has a line break or non-ASCII letter")
        self._endpoint = read_address(address)
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._max_concurrent = max_concurrent
        self._first_pause_s = first_pause_s
        self._pool = ThreadPoolExecutor(max_concurrent, thread_name_prefix="judge")
        self._calls = Calls()

    @property
    def name(self) -> str:
        """Return the model and the address."""
        return f"{self._model} at {self._endpoint.address}"

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far."""
        return self._calls.snapshot

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Send all prompts concurrently.

        If as many prompts in a row as run concurrently get no reply, the judge counts as down: the
        rest of this call is abandoned without waiting for each deadline.

        Raises:
            SettingsError: the endpoint refuses the key, the address or the model.
        """
        losses = _Losses(self._max_concurrent)
        replies = list(self._pool.map(lambda prompt: self._answer(prompt, losses), prompts))
        missing = replies.count(None)
        self._calls.add(asked=len(replies), failed=missing)
        if missing:
            _LOG.warning(
                "%s gave no text for %d of %d prompts; the last cause: %s",
                *(self.name, missing, len(replies), losses.cause),
            )
        return replies

    def close(self) -> None:
        """Stop the threads after the requests in progress have ended."""
        self._pool.shutdown()

    def _answer(self, prompt: Sequence[Message], losses: "_Losses") -> str | None:
        if losses.too_many:
            return None
        end = time.monotonic() + DEADLINE_CALLS * self._timeout_s
        pause_s = self._first_pause_s
        while True:
            try:
                text = self._post(prompt, min(self._timeout_s, end - time.monotonic()))
            except _Refused as error:
                losses.refused(str(error))
                return None
            except _Again as error:
                wait_s = pause_s * random.uniform(0.5, 1.5)
                if losses.too_many or time.monotonic() + wait_s >= end:
                    losses.lost(str(error))
                    return None
                time.sleep(wait_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._calls.add(retried=1)
            else:
                losses.answered()
                return text

    def _post(self, prompt: Sequence[Message], timeout_s: float) -> str:
        body = {
            "model": self._model,
            "messages": [{"role": m.role.value, "content": m.content} for m in prompt],
            "temperature": 0,
            "max_tokens": MAX_REPLY_TOKENS,
        }
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            with _connection(self._endpoint, timeout_s) as connection:
                connection.request("POST", self._endpoint.path, json.dumps(body), headers)
                response = connection.getresponse()
                content = response.read(MAX_BODY_BYTES + 1)
                if response.length and len(content) <= MAX_BODY_BYTES:
                    raise http.client.IncompleteRead(content, response.length)
        except (OSError, http.client.HTTPException) as error:
            raise _Again(f"{type(error).__name__}: {error}") from error
        if response.status in _USER_ACTS:
            fix = _USER_ACTS[response.status].format(address=self._endpoint.address)
            raise SettingsError(f"{self.name} answered {response.status}: {fix}")
        if response.status in _PASSING:
            raise _Again(f"status {response.status}")
        if response.status != 200:
            raise _Refused(f"status {response.status}: {content[:200]!r}")
        return _text_of(content)


class _Losses:
    """Consecutive prompts of one call that ended without a text."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_a_row = 0
        self.cause = ""

    @property
    def too_many(self) -> bool:
        return self._in_a_row >= self._limit

    def answered(self) -> None:
        self._in_a_row = 0

    def refused(self, cause: str) -> None:
        # The endpoint is up: it rejected this one prompt.
        self._in_a_row, self.cause = 0, cause

    def lost(self, cause: str) -> None:
        self._in_a_row, self.cause = self._in_a_row + 1, cause


@contextmanager
def _connection(endpoint: Endpoint, timeout_s: float) -> Iterator[http.client.HTTPConnection]:
    """Open a connection that is cut at its deadline.

    A socket's own timeout restarts with every byte, so a slow server could hold a prompt for hours.
    """
    timeout_s = max(timeout_s, 0.001)
    kind = http.client.HTTPSConnection if endpoint.secure else http.client.HTTPConnection
    connection = kind(endpoint.host, endpoint.port, timeout=timeout_s)
    start = time.monotonic()
    try:
        connection.connect()
        left_s = max(timeout_s - (time.monotonic() - start), 0.0)
        watch = threading.Timer(left_s, _cut, [connection.sock])
        watch.daemon = True
        watch.start()
        try:
            yield connection
        finally:
            watch.cancel()
        if time.monotonic() - start >= timeout_s:  # a body cut at the deadline looks complete
            raise TimeoutError(f"no complete reply in {timeout_s:.1f} s")
    finally:
        connection.close()


def _cut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        _LOG.debug("the connection had ended by itself")


def _text_of(content: bytes) -> str:
    """Extract the reply from a response body."""
    if len(content) > MAX_BODY_BYTES:
        raise _Refused(f"more than {MAX_BODY_BYTES} bytes")
    try:
        text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _Refused(f"not a chat completion: {content[:200]!r}") from error
    if not isinstance(text, str):
        raise _Refused("the completion has no text")
    return text
