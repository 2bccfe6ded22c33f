"""Rank 0 sends commands, executes its part and receives replies; the other ranks execute them."""

import functools
import itertools
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from torch import distributed as dist
from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from tasks.engines.team import payloads, wire
from tasks.engines.team.failure_store import FailureStore
from tasks.engines.team.member import Command, End, Member, join_team, read_rank_info
from tasks.errors import EngineError, PipelineError

# Rank 0 of a team: sends commands, executes its own part and receives replies.

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


# The other ranks of a team: execute the controller's commands until it ends the team.
#
# SIGTERM is forwarded to the controller, which finishes its step, commits and ends the team. This
# also informs the controller when only a worker's machine is preempted.

logger = logging.getLogger(__name__)


def serve() -> None:
    """Execute the controller's commands until it ends the team.

    Raises:
        PipelineError: this rank failed; the message names it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with (
        join_team() as member,
        member.failures.end_process_when_over(code=0),
        _leaving_sigterm_to_the_controller(member.failures) as signals,
    ):
        second = threading.Thread(
            target=_serve_async_group, args=(member,), name="async_group", daemon=True
        )
        second.start()
        if _serve_channel(member, member.commands) is End.DONE:
            signals.clear()
        # It has received its End, or its connection breaks. At the interpreter's exit a thread in
        # a collective aborts the process, and a stage that is finished would fail.
        second.join()


@contextmanager
def _leaving_sigterm_to_the_controller(failures: FailureStore) -> Iterator[list[int]]:
    """Forward SIGTERM to the controller instead of exiting, until the block ends.

    Yields:
        The received signals: if there are any, this process finally exits by SIGTERM.

    The main thread waits in a collective and runs no handler, so a thread reads the number of the
    signal from a socket.
    """
    signals: list[int] = []
    here, there = socket.socketpair()
    there.setblocking(False)

    def pass_on() -> None:
        while number := here.recv(1):
            if number[0] == signal.SIGTERM:
                failures.pass_on_sigterm()

    sender = threading.Thread(target=pass_on, name="sigterm", daemon=True)
    sender.start()
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    try:
        yield signals
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        there.close()
        sender.join()
        here.close()
        if signals:  # the agent sent it and waits for the exit
            os.kill(os.getpid(), signal.SIGTERM)


def _serve_channel(member: Member, group: dist.ProcessGroup) -> End:
    """Serve one channel. If the controller is gone, return: the agent knows the cause."""
    while True:
        try:
            command = wire.receive_broadcast(group)
        except RuntimeError as error:
            logger.warning("rank %d: the controller is gone: %s", member.rank_info.rank, error)
            return End.FAILED
        if isinstance(command, End):
            return command
        try:
            reply = _execute(command, member)
        except PipelineError as error:
            if member.failures.is_over():  # caused by another rank's failure
                logger.warning("rank %d: %s", member.rank_info.rank, error)
                return End.FAILED
            member.failures.report(error)
            raise type(error)(f"rank {member.rank_info.rank}: {error}") from error
        try:
            payloads.gather(reply, group)
        except RuntimeError as error:
            logger.warning("rank %d: the controller is gone: %s", member.rank_info.rank, error)
            return End.FAILED


def _execute(command: object, member: Member) -> object:
    """Execute a command; convert any error of an engine into a PipelineError.

    Raises:
        EngineError: a library failed.
    """
    try:
        execute: Command = command  # pyright: ignore[reportAssignmentType]
        return execute.execute(member)
    except PipelineError:
        raise
    except Exception as error:
        raise EngineError(f"{type(error).__name__}: {error}") from error


def _serve_async_group(member: Member) -> None:
    """Serve the second channel in its own thread; its failure is a failure of the process."""

    try:
        _serve_channel(member, member.async_group)
    except PipelineError as error:
        get_error_handler().record_exception(error)
        os._exit(1)


# Runs a stage in every process of a team.

Args = ParamSpec("Args")
Result = TypeVar("Result")


def in_team(function: Callable[Args, Result]) -> Callable[Args, Result | None]:
    """Run a stage in rank 0 and have the other ranks serve its engines; they return None."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result | None:
        if read_rank_info().size == 1:
            return function(*args, **kwargs)
        if not read_rank_info().is_controller:
            serve()
            return None
        with controlling():
            return function(*args, **kwargs)

    return run
