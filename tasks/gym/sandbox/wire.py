"""Frames of JSON over a socket, and Python data as JSON.

Only data is transferred: scalars, containers of data, and numbered handles for everything else.
Decoding builds exact built-in types, so a value with its own `__eq__` cannot reach a comparison.
"""

import json
import socket
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

MAX_FRAME_BYTES = 4 * 2**20
MAX_STREAM_BYTES = 16 * 2**20
"""The largest input of a program; its output is limited further (`Limits.output_mib`)."""
_MAX_ITEMS = 100_000
"""Items after which an iterator counts as endless."""
_SMALL = 2**63
_TYPES = (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, type(None))

Keep = Callable[[object], int]
"""Stores an object that is not data; returns the number of its handle."""
Fetch = Callable[[int, str], Any]
"""Returns the object or proxy of a handle, given its number and type name."""


class WireError(Exception):
    """The peer closed the socket, or sent an invalid or too long frame."""


def send(link: socket.socket, message: object) -> None:
    """Send one JSON value."""
    send_bytes(link, json.dumps(message).encode())


def receive(link: socket.socket) -> Any:
    """Receive one JSON value.

    Raises:
        WireError: end of stream, too long, or not JSON.
        TimeoutError: the socket has a timeout and it passed.
    """
    try:
        return json.loads(receive_bytes(link))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error


def send_bytes(link: socket.socket, payload: bytes, most: int = MAX_FRAME_BYTES) -> None:
    """Send one frame of at most `most` bytes."""
    if len(payload) > most:
        raise WireError(f"message of {len(payload)} bytes")
    try:
        link.sendall(len(payload).to_bytes(4, "big") + payload)
    except OSError as error:
        raise WireError(str(error)) from error


def receive_bytes(link: socket.socket, most: int = MAX_FRAME_BYTES) -> bytes:
    """Receive one frame of at most `most` bytes."""
    size = int.from_bytes(_exactly(link, 4), "big")
    if size > most:
        raise WireError(f"message of {size} bytes")
    return _exactly(link, size)


def encode(value: object, keep: Keep) -> Any:  # noqa: C901, PLR0911, PLR0912 - a table
    """Encode data as JSON; other objects are passed to `keep` and become handles."""
    match value:
        case None | bool() | float() | str():
            return _scalar(value)
        case int():
            number = int.__index__(value)
            return number if -_SMALL < number < _SMALL else {"int": hex(number)}
        case complex():
            return {"complex": [value.real, value.imag]}
        case bytes() | bytearray():
            return {"bytes": bytes(value).hex()}
        case range():
            return {"range": [value.start, value.stop, value.step]}
        # Methods of the built-in types, here and below: those of a subclass are the program's own.
        case dict():
            return {"dict": [[encode(k, keep), encode(v, keep)] for k, v in dict.items(value)]}
        case list():
            return {"list": [encode(item, keep) for item in list.__iter__(value)]}
        case tuple():
            return {"tuple": [encode(item, keep) for item in tuple.__iter__(value)]}
        case set():
            return {"set": [encode(item, keep) for item in set.__iter__(value)]}
        case frozenset():
            return {"frozenset": [encode(item, keep) for item in frozenset.__iter__(value)]}
        case deque():
            return {"deque": [encode(item, keep) for item in deque.__iter__(value)]}
        case Iterator():
            items = list(islice(value, _MAX_ITEMS + 1))
            if len(items) > _MAX_ITEMS:
                raise WireError("endless iterator")
            return {"iterator": [encode(item, keep) for item in items]}
        case type() if value in _TYPES:
            return {"type": value.__name__}
        case _:
            return {"handle": [keep(value), type(value).__name__]}


def decode(value: Any, fetch: Fetch) -> Any:
    """Decode data; handles are passed to `fetch`.

    Raises:
        WireError: the value was not made by `encode`.
    """
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise WireError("bare list")
        return value
    if len(value) != 1:
        raise WireError("not exactly one key")
    [(kind, content)] = value.items()
    try:
        return _DECODERS[kind](content, fetch)
    except WireError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError, StopIteration) as error:
        raise WireError(f"bad {kind}: {error}") from error


def _scalar(value: object) -> Any:
    # json would call methods of a subclass of str or float.
    if isinstance(value, str):
        return str.__str__(value) if type(value) is str else "".join(str.__iter__(value))
    if isinstance(value, float) and type(value) is not float:
        return float.__float__(value)
    return value


def _items(content: Any, fetch: Fetch) -> list[Any]:
    return [decode(item, fetch) for item in content]


_DECODERS: dict[str, Callable[[Any, Fetch], Any]] = {
    "int": lambda content, _: int(content, 16),
    "complex": lambda content, _: complex(*content),
    "bytes": lambda content, _: bytes.fromhex(content),
    "range": lambda content, _: range(*content),
    "dict": lambda content, fetch: {decode(k, fetch): decode(v, fetch) for k, v in content},
    "list": _items,
    "tuple": lambda content, fetch: tuple(_items(content, fetch)),
    "set": lambda content, fetch: set(_items(content, fetch)),
    "frozenset": lambda content, fetch: frozenset(_items(content, fetch)),
    "deque": lambda content, fetch: deque(_items(content, fetch)),
    "type": lambda content, _: next(kind for kind in _TYPES if kind.__name__ == content),
    "iterator": lambda content, fetch: iter(_items(content, fetch)),
    "handle": lambda content, fetch: fetch(int(content[0]), str(content[1])),
}


def _exactly(link: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        try:
            part = link.recv(min(size, 2**16))
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(str(error)) from error
        if not part:
            raise WireError("the peer closed the socket")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
