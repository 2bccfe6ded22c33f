"""The loop of a process that plays the episodes of one environment; standard library only.

It runs in the interpreter that has the environment's library. A request is one line of JSON on
standard input, a reply one line on what was standard output; what the environment prints goes to
standard error. An episode stays open after its newest turn, until it has ended. One that is asked
for with other turns, or that was closed to make room, is played again from its beginning.

Every episode has its own state of `random` and of NumPy's global generator, seeded by its task: so
its answers do not depend on which other episodes are open.
"""

import hashlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

MAX_OPEN = 256
"""Episodes whose steps are known; the oldest is closed."""
DETAIL_CHARACTERS = 500
_TICK_S = 1.0


@dataclass(frozen=True)
class Step:
    """What an environment says to a turn."""

    messages: Sequence[Mapping[str, str]] = ()
    """Role and content of each; none at the end of the episode."""
    done: bool = False
    reward: float | None = None
    """Reward of the whole episode, when it has ended."""


@dataclass(frozen=True)
class Turn:
    """A turn of the policy, after its thinking."""

    text: str
    calls: Sequence[Mapping[str, Any]] | None
    """`name` and `parameters` of each call; None if the text is anything but calls in JSON."""
    truncated: bool = False
    """The limit of tokens has cut it: a server says `length`."""


class FullError(Exception):
    """The environment has no room for another episode beside those that are open."""


class Episode(Protocol):
    """One episode in progress."""

    def step(self, turn: Turn) -> Step:
        """Answer a turn; anything raised is a failure of the environment."""
        ...

    def close(self) -> None:
        """Give its resources back."""
        ...


class Host(Protocol):
    """An environment that a library provides."""

    version: str
    """Version of the library and the environment: an episode is not played with another one."""

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List tasks: `task` for `begin`, `messages` of the prompt, `tools` and perhaps `refused`.

        Args:
            request: `limit` and `row`, the row that an adapter has read.
        """
        ...

    def begin(self, task: Mapping[str, Any]) -> Episode:
        """Open an episode of a task.

        Raises:
            FullError: once another one is closed there is room.
        """
        ...


@dataclass
class _Open:
    episode: Episode | None
    """None: closed."""
    random_state: tuple[Any, Any] = (None, None)
    steps: list[Step] = field(default_factory=list)

    def close(self) -> None:
        episode, self.episode = self.episode, None
        if episode is not None:
            episode.close()


class Player:
    """Plays the episodes of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open: dict[str, _Open] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request: tasks if it asks for an offer, else the steps of an episode."""
        if "offer" in request:
            return {"version": self._host.version, "tasks": self._host.offer(request["offer"])}
        if request["version"] != self._host.version:
            raise ValueError(f"the environment is {self._host.version}")
        steps = self._play(request["task"], [Turn(**turn) for turn in request["turns"]])
        return {"steps": [vars(step) for step in steps]}

    def _play(self, task: Mapping[str, Any], turns: Sequence[Turn]) -> list[Step]:
        key = _key(task, turns)
        if key not in self._open:
            now = self._open.pop(_key(task, turns[:-1]), None)
            now, rest = (now, turns[-1:]) if now else (self._begin(task), turns)
            try:
                for turn in rest:
                    self._advance(now, turn)
            except Exception:
                now.close()
                raise
            if now.steps and now.steps[-1].done:
                now.close()
            self._open[key] = now
            while len(self._open) > MAX_OPEN:
                self._open.pop(next(iter(self._open))).close()
        return self._open[key].steps

    def _begin(self, task: Mapping[str, Any]) -> _Open:
        while True:
            try:
                return self._begin_beside(task)
            except FullError:
                oldest = next((key for key, one in self._open.items() if one.episode), None)
                if oldest is None:
                    raise
                self._open.pop(oldest).close()

    def _begin_beside(self, task: Mapping[str, Any]) -> _Open:
        seed = json.dumps(task, sort_keys=True)
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big"))
        episode = self._host.begin(task)
        return _Open(episode, _random_state())

    def _advance(self, now: _Open, turn: Turn) -> None:
        if now.episode is None or (now.steps and now.steps[-1].done):
            raise ValueError("the episode has ended before its last turn")
        of_python, of_numpy = now.random_state
        random.setstate(of_python)
        numpy = sys.modules.get("numpy")
        if numpy is not None and of_numpy is not None:
            numpy.random.set_state(of_numpy)
        now.steps.append(now.episode.step(turn))
        now.random_state = _random_state()


def serve(start: Callable[[], Host]) -> None:
    """Answer requests until standard input ends, or the process that sends them."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    player: Player | None = None
    for line in sys.stdin:
        try:
            player = player or Player(start())
            reply = player.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the boundary: the reader gets the error's name
            reply = {"error": type(error).__name__, "detail": str(error)[:DETAIL_CHARACTERS]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _key(task: Mapping[str, Any], turns: Sequence[Turn]) -> str:
    return json.dumps([task, [vars(turn) for turn in turns]], sort_keys=True)


def _random_state() -> tuple[Any, Any]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), None if numpy is None else numpy.random.get_state()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_TICK_S)
    os._exit(1)
