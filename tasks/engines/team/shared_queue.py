"""The request queue that the replicas of a team share: rank 0 deals, the others ask it."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.engines.protocols import Request
from tasks.engines.request_queue import Ending, Room, deal
from tasks.engines.team import payloads
from tasks.engines.team.inbox import LOOK_EVERY_S
from tasks.engines.team.member import Member
from tasks.errors import EngineError

Replicas = tuple[tuple[int, ...], ...]
"""Ranks of every replica, its representative first."""


@dataclass(frozen=True, slots=True)
class ReplicaShare:
    """What a replica gets in a round."""

    requests: Sequence[Request]
    last: bool
    """Nothing is left in the queue, or nothing more is needed."""
    over: bool = False
    """The call has as many complete prompts as it needs."""


class Dealer:
    """Collects the rooms of all replicas, round by round, and deals.

    Args:
        requests: in the order in which they start.
        replicas: number of replicas.
        answer: gives a replica its share; only replicas with room get one, or all with `enough`.
        enough: complete prompts with which the call ends, at the end of a round; 0 = it does not.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        replicas: int,
        answer: Callable[[int, ReplicaShare], None],
        enough: int = 0,
    ) -> None:
        self._enough, self._ending = enough, Ending(requests, enough)
        self._waiting = list(requests)
        self._rooms: list[deque[Room]] = [deque() for _ in range(replicas)]
        self._answer = answer
        self._lock = threading.Lock()

    def ask(self, replica: int, room: Room) -> None:
        """Note the room of a replica; deal if all have asked for its round."""
        with self._lock:
            self._rooms[replica].append(room)
            if self._enough:
                self._answer_all()
                return
            while self._waiting and all(self._rooms):
                rooms = [rooms.popleft() for rooms in self._rooms]
                dealt = deal(self._waiting, rooms)
                for place, requests in enumerate(dealt):
                    if rooms[place].slots:
                        self._answer(place, ReplicaShare(requests, last=not self._waiting))
            if not self._waiting:
                for place, waiting_rooms in enumerate(self._rooms):
                    if any(room.slots for room in waiting_rooms):
                        self._answer(place, ReplicaShare((), last=True))
                    waiting_rooms.clear()

    def _answer_all(self) -> None:
        while all(self._rooms):
            rooms = [rooms.popleft() for rooms in self._rooms]
            over = self._ending.reached(name for room in rooms for name in room.ended)
            dealt = [[] for _ in rooms] if over else deal(self._waiting, rooms)
            for place, requests in enumerate(dealt):
                self._answer(place, ReplicaShare(requests, last=over, over=over))


class SharedQueue:
    """A RequestQueue of one rank.

    Args:
        samples: of all requests.
        ask: tells the dealer this replica's room.
        share: waits for the answer.
        always: every round is answered, also without room.
    """

    def __init__(
        self,
        samples: int,
        ask: Callable[[Room], None],
        share: Callable[[], ReplicaShare],
        *,
        always: bool = False,
    ) -> None:
        self._samples = samples
        self._ask, self._share, self._always = ask, share, always
        self._empty = self._over = False

    @property
    def samples(self) -> int:
        """Responses of all requests that were in the queue."""
        return self._samples

    @property
    def empty(self) -> bool:
        """True once this replica knows that nothing is left."""
        return self._empty

    @property
    def over(self) -> bool:
        """True once this replica knows that the call has enough prompts."""
        return self._over

    def take(self, room: Room) -> Sequence[Request]:
        """Take part in a round; waits for the other replicas if there is an answer."""
        self._ask(room)
        if not (room.slots or self._always):
            return ()
        share = self._share()
        self._empty, self._over = share.last, share.over
        return share.requests


def queue_of_worker(member: Member, representative: int, samples: int, enough: int) -> SharedQueue:
    """Return the queue of a rank other than 0; all ranks of a replica get the same."""

    def ask(room: Room) -> None:
        if member.rank_info.rank == representative:
            payloads.send(room, 0, member.rollouts)

    def share() -> ReplicaShare:
        return ReplicaShare(*payloads.recv(0, member.rollouts))

    return SharedQueue(samples, ask, share, always=enough > 0)


def queue_of_controller(
    member: Member, replicas: Replicas, requests: Sequence[Request], enough: int
) -> tuple[SharedQueue, Dealer]:
    """Return the queue of rank 0, and the dealer, which the rooms of other replicas go to."""
    mine: queue.SimpleQueue[ReplicaShare] = queue.SimpleQueue()

    def answer(replica: int, share: ReplicaShare) -> None:
        for rank in replicas[replica]:
            if rank:
                payloads.send((share.requests, share.last, share.over), rank, member.rollouts)
            else:
                mine.put(share)

    def wait() -> ReplicaShare:
        while True:
            try:
                return mine.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if member.failures.is_over():
                    raise member.failures.failure() or EngineError("the team is over") from None

    dealer = Dealer(requests, len(replicas), answer, enough)
    samples = sum(request.num_samples for request in requests)
    return SharedQueue(samples, partial(dealer.ask, 0), wait, always=enough > 0), dealer
