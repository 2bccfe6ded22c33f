"""Rank 0 of a team: sends commands, executes its own part and receives replies."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar

from torch import distributed as dist

from tasks.engines.team import payloads, wire
from tasks.engines.team.failure_store import FailureStore
from tasks.engines.team.member import Command, End, Member, join_team, read_rank_info
from tasks.errors import EngineError

_CURRENT: ContextVar["Controller | None"] = ContextVar("controller", default=None)


class Channel:
    """One command at a time to all other ranks.

    Args:
        group: carries the commands and replies.
        failures: of this rank.
        works_here: the ranks execute the commands themselves, not processes that they started.
    """

    def __init__(
        self, group: dist.ProcessGroup, failures: FailureStore, *, works_here: bool
    ) -> None:
        self._group = group
        self._board = failures
        self._works_here = works_here
        self._free = threading.Lock()

    @contextmanager
    def together(self, command: Command) -> Iterator[list[object]]:
        """Send a command to the workers while the block executes the controller's part.

        Args:
            command: for the workers.

        Yields:
            A list that holds the replies of ranks 1, 2 ... when the block has ended.

        Raises:
            EngineError: a rank failed or exited; the message names it if it is known.
        """
        if not self._free.acquire(blocking=False):
            raise EngineError(
                f"{type(command).__name__} while the team is busy: engines that share their "
                "processes run one command at a time"
            )
        replies: list[object] = []
        with self._board.name_failed_rank():
            wire.broadcast(command, self._group)
            with self._board.expect_work(expected=self._works_here):
                yield replies
                replies.extend(payloads.gather(None, self._group)[1:])
        # Not released after an error: the state of the workers is unknown.
        self._free.release()

    def paused(self) -> AbstractContextManager[None]:
        """Expect no work while the block of a command waits for its caller."""
        return self._board.expect_work(expected=False)

    @property
    def busy(self) -> bool:
        """True while a command runs, and for good after one that failed."""
        return self._free.locked()

    def stop(self, end: End) -> None:
        """End the workers' command loop, if they still receive commands."""
        if self._free.acquire(blocking=False):
            with self._board.name_failed_rank():
                wire.broadcast(end, self._group)


class Controller:
    """The controller of a team; `select` opens engines through it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.commands = Channel(member.commands, member.failures, works_here=True)
        self.async_group = Channel(member.async_group, member.failures, works_here=False)
        self._numbers = itertools.count()

    def number(self) -> int:
        """Return the number of the next engine."""
        return next(self._numbers)

    @property
    def is_lost(self) -> bool:
        """True if no command can reach the workers any more."""
        return self.commands.busy or self.async_group.busy

    def dismiss(self, end: End) -> None:
        """End the command loops of the workers that still receive commands."""
        self.async_group.stop(end)
        self.commands.stop(end)


@contextmanager
def controlling() -> Iterator[Controller]:
    """Be the controller while the block runs; when it ends, so do the workers."""
    with join_team() as member, member.failures.end_process_when_over(code=1):
        controller = Controller(member)
        token = _CURRENT.set(controller)
        try:
            yield controller
        except BaseException:
            # First, so that no rank reports the broken connection as the cause.
            member.failures.end()
            with suppress(EngineError):
                controller.dismiss(End.FAILED)
            raise
        finally:
            _CURRENT.reset(token)
        controller.dismiss(End.DONE)
        member.failures.end()


def current() -> Controller | None:
    """The controller of this process's team; None in a stage of one process.

    Raises:
        EngineError: there are other processes, but this one is not their controller.
    """
    controller = _CURRENT.get()
    if controller is None and read_rank_info().size > 1:
        raise EngineError("engines of a team are opened by its controller, within `controlling`")
    return controller
