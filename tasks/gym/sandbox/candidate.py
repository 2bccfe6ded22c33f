"""The process that contains the program under test, and nothing else.

It does what the checker requests: load the source, look up a name, call, read or set an attribute.
Whatever the program does to this process, it can change only the values that are sent. Standard
library only.
"""

import os
import random
import socket
import sys
from types import ModuleType
from typing import Any

from tasks.gym.sandbox.wire import WireError, decode, encode, receive, send


class CandidateProgram:
    """The program's namespace and the objects that the checker holds handles of."""

    def __init__(self) -> None:
        self.module = ModuleType("candidate")
        self.objects: list[object] = []

    def keep(self, value: object) -> int:
        """Store an object and return its number."""
        self.objects.append(value)
        return len(self.objects) - 1

    def fetch(self, number: int, _: str = "") -> Any:
        """Return a stored object."""
        return self.objects[number]

    def answer(self, request: dict[str, Any]) -> Any:  # noqa: PLR0911 - a table
        """Execute one request and return the reply."""
        match request:
            case {"load": str(source)}:
                sys.modules["candidate"] = self.module
                exec(compile(source, "<candidate>", "exec"), self.module.__dict__)
                return {"value": None}
            case {"lookup": str(name)}:
                if name not in self.module.__dict__:
                    return {"missing": name}
                return {"value": encode(self.module.__dict__[name], self.keep)}
            case {"call": int(number), "args": args, "kwargs": kwargs}:
                return self._call(self.fetch(number), args, kwargs)
            case {"getattr": int(number), "name": str(name)}:
                return {"value": encode(getattr(self.fetch(number), name), self.keep)}
            case {"setattr": int(number), "name": str(name), "to": value}:
                setattr(self.fetch(number), name, decode(value, self.fetch))
                return {"value": None}
            case {"bool": int(number)}:
                return {"value": bool(self.fetch(number))}
            case _:
                raise WireError("unknown request")

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        positional = decode(args, self.fetch)
        value = encode(function(*positional, **decode(kwargs, self.fetch)), self.keep)
        # A test may look at an argument that the program changed in place.
        after = {
            str(index): encode(argument, self.keep)
            for index, argument in enumerate(positional)
            if isinstance(argument, list | dict | set)
        }
        return {"value": value, "after": after}


def serve(link: socket.socket) -> None:
    """Answer the checker until it closes the socket."""
    random.seed(0)
    candidate = CandidateProgram()
    while True:
        try:
            request = receive(link)
        except WireError:
            os._exit(0)
        try:
            reply = candidate.answer(request)
        except BaseException as error:  # noqa: BLE001 - the boundary: a program may raise anything
            reply = {"error": type(error).__name__, "message": _text(error)}
        try:
            send(link, reply)
        except WireError as error:
            send(link, {"error": "WireError", "message": str(error)})


def _text(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except BaseException:  # noqa: BLE001 - the program's own __str__
        return ""
