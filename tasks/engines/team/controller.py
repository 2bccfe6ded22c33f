"""Rank 0 of a team: commands go out, its own part is done, replies come in."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from torch import distributed as dist

from tasks.engines.team import wire
from tasks.engines.team.failure_store import Board
from tasks.engines.team.member import Command, End, Member, joined
from tasks.engines.team.rank_info import place
from tasks.errors import EngineError

_CURRENT: ContextVar["Leader | None"] = ContextVar("leader", default=None)


class Channel:
    """One command at a time to all other ranks."""

    def __init__(self, group: dist.ProcessGroup, board: Board) -> None:
        self._group = group
        self._board = board
        self._free = threading.Lock()

    @contextmanager
    def together(self, command: Command) -> Iterator[list[object]]:
        """Have the others do a command while the block does the leader's part.

        Yields:
            A list that holds the replies of ranks 1, 2 ... when the block has ended.

        Raises:
            EngineError: a rank failed or went away; the message names it where it is known.
        """
        if not self._free.acquire(blocking=False):
            raise EngineError(
                f"{type(command).__name__} while the team is busy: engines that share their "
                "processes work in turn"
            )
        replies: list[object] = []
        with self._board.naming_who_failed():
            wire.tell(command, self._group)
            yield replies
            replies.extend(wire.gather(None, self._group)[1:])
        # After an error it stays taken: nobody knows what the others are doing.
        self._free.release()

    @property
    def busy(self) -> bool:
        """True while a command runs, and for good after one that failed."""
        return self._free.locked()

    def stop(self, end: End) -> None:
        """Send the others home, if they are listening."""
        if self._free.acquire(blocking=False):
            with self._board.naming_who_failed():
                wire.tell(end, self._group)


class Leader:
    """What `select` opens engines with when a stage runs in several processes."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.commands = Channel(member.commands, member.board)
        self.beside = Channel(member.beside, member.board)
        self._numbers = itertools.count()

    def number(self) -> int:
        """Name the next engine."""
        return next(self._numbers)

    @property
    def lost(self) -> bool:
        """True if the others cannot be told anything any more."""
        return self.commands.busy or self.beside.busy

    def dismiss(self, end: End) -> None:
        """Send the others home, where they are listening."""
        self.beside.stop(end)
        self.commands.stop(end)


@contextmanager
def leading() -> Iterator[Leader]:
    """Be the leader while the block runs; whatever ends it, the others end as well."""
    with joined() as member, member.board.watching(code=1):
        leader = Leader(member)
        token = _CURRENT.set(leader)
        try:
            yield leader
        except BaseException:
            # First of all, so that nobody takes a broken connection for the cause.
            member.board.end()
            with suppress(EngineError):
                leader.dismiss(End.FAILED)
            raise
        finally:
            _CURRENT.reset(token)
        leader.dismiss(End.DONE)
        member.board.end()


def current() -> Leader | None:
    """The leader of this process's team; None in a stage of one process.

    Raises:
        EngineError: there are other processes, but this one does not lead them.
    """
    leader = _CURRENT.get()
    if leader is None and place().size > 1:
        raise EngineError("engines of a team are opened by its leader, within `leading`")
    return leader
