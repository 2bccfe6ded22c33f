"""The other ranks of a team: execute the controller's commands until it ends the team.

SIGTERM is forwarded to the controller, which finishes its step, commits and ends the team. This
also informs the controller when only a worker's machine is preempted.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed as dist
from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from tasks.engines.team import payloads, wire
from tasks.engines.team.failure_store import FailureStore
from tasks.engines.team.member import Command, End, Member, join_team
from tasks.errors import EngineError, PipelineError

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
