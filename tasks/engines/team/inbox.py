"""Rollouts that the controller receives from other ranks."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from data_schemas.rollouts import Rollout
from tasks.engines.request_queue import Room
from tasks.engines.team import payloads
from tasks.engines.team.member import Member
from tasks.errors import EngineError

LOOK_EVERY_S = 1.0


class Inbox:
    """Receives rollouts in one thread per sender, until each sender is done.

    Args:
        member: the controller's.
        senders: ranks; every one of them ends with None.
        ask: is given the rooms that they send, with the sender's index.
        keep: the senders keep the routes, and who has which is noted.
    """

    def __init__(
        self,
        member: Member,
        senders: Sequence[int],
        ask: Callable[[int, Room], None],
        *,
        keep: bool,
    ) -> None:
        self._member = member
        self._ask = ask
        self._keep = keep
        self._open = len(senders)
        self._queue: queue.SimpleQueue[Rollout | RuntimeError | None] = queue.SimpleQueue()
        for place, sender in enumerate(senders):
            threading.Thread(
                target=self._receive,
                args=(place, sender),
                name=f"rollouts-of-{sender}",
                daemon=True,
            ).start()

    def take_arrived(self) -> Iterator[Rollout]:
        """Yield the received rollouts, without waiting."""
        while not self._queue.empty():
            yield from self._accept(self._queue.get())

    def remaining(self) -> Iterator[Rollout]:
        """Yield all further rollouts, waiting for them.

        Raises:
            EngineError: a sender failed.
        """
        while self._open:
            try:
                item = self._queue.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if self._member.failures.is_over():
                    raise self._member.failures.failure() or EngineError(
                        "the team is over"
                    ) from None
                continue
            yield from self._accept(item)

    def _accept(self, item: Rollout | RuntimeError | None) -> Iterator[Rollout]:
        if isinstance(item, RuntimeError):
            raise item
        if item is None:
            self._open -= 1
        else:
            yield item

    def _receive(self, place: int, sender: int) -> None:
        try:
            while (item := payloads.recv(sender, self._member.rollouts)) is not None:
                if isinstance(item, Room):
                    self._ask(place, item)
                    continue
                assert isinstance(item, Rollout)
                if self._keep and item.trace is not None:
                    self._member.recorders[item.trace.digest] = sender
                self._queue.put(item)
            self._queue.put(None)
        except RuntimeError as error:  # an error cannot be raised out of a thread
            self._queue.put(error)
