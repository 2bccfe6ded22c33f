# pyright: reportMissingImports=false
"""One weight sync of weights to engines in processes of their own: all of them have it, or none.

The tensors always go into a folder, which an engine that has to start anew is opened on. Where the
workers share a group with the owner, they get every tensor over it while the folder is written;
where not, they read the folder when it is complete.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import torch

from tasks.engines.rollout_vllm.broadcast import Entry, Outbox
from tasks.engines.rollout_vllm.process import Lost, Process
from tasks.engines.rollout_vllm.staging import Staging, files_of
from tasks.errors import EngineError


class Update:
    """vLLM's update of one process: start, parts, finish.

    A process that is lost on the way gets no more; `end` says so, since a new one will need the
    complete folder.
    """

    def __init__(self, process: Process) -> None:
        self.lost: Lost | None = None
        self.begun = False
        """Whether the process has lost the weights of before."""
        self.link = process.link
        self._process = process
        self._flying: tuple[Future[list[Any]], Any] | None = None

    def send(self, entries: list[Entry], packet: torch.Tensor) -> None:
        """Send a packet when the one before has been taken in: two are held at most."""
        if self.lost is not None:
            return
        assert self.link is not None
        try:
            self._settle()
            taken = self._part(entries=entries)
            self._flying = (taken, self.link.send(packet))
        except Lost as error:
            # Without what it refers to: the packet.
            self.lost = error.with_traceback(None)
        except EngineError:
            raise
        except RuntimeError as error:
            self.lost = Lost(f"vLLM's workers are gone: {error}")

    def end(self, folder: Path) -> str:
        """Finish; return the digest of what the workers received.

        Raises:
            Lost: by now, or before.
            EngineError: vLLM failed, or its workers received different tensors.
        """
        if self.lost is not None:
            raise self.lost
        self._settle()
        for path in files_of(folder) if self.link is None else ():
            self._process.answer(self._part(path=str(path)))
        self._process.tell("finish_weight_update")
        digests = set(self._process.tell("received_digest"))
        if len(digests) != 1:
            raise EngineError(f"workers of one engine received different weights: {digests}")
        self._process.resume()
        return digests.pop()

    def _part(self, **info: Any) -> Future[list[Any]]:
        if not self.begun:
            self.begun = True
            self._process.pause()
            self._process.tell("start_weight_update")
        return self._process.call("update_weights", update_info=info)

    def _settle(self) -> None:
        """Wait until the last packet was taken in."""
        if self._flying is not None:
            taken, sending = self._flying
            self._flying = None
            self._process.answer(taken)
            sending.wait()


class Owner(Protocol):
    """What is told of a weight sync."""

    def begin(self) -> Update:
        """Start one."""
        ...

    def end(self, update: Update, folder: Path) -> str:
        """Have the weights of the folder; return the digest of what was received."""
        ...

    def give_up(self, update: Update) -> None:
        """Have the weights of before."""
        ...


def sync_weights(
    owners: Sequence[Owner], staging: Staging, weights: Iterator[tuple[str, torch.Tensor]]
) -> str:
    """Give all engines the same weights.

    Raises:
        EngineError: the tensors do not fit, or an update failed; all engines are as before.
    """
    updates = [owner.begin() for owner in owners]
    folder = None
    try:
        folder = staging.write(weights, outbox=_outbox(updates, staging.chunk_bytes))
        digests = {owner.end(update, folder) for owner, update in zip(owners, updates, strict=True)}
        if len(digests) != 1:
            raise EngineError(f"replicas received different weights: {sorted(digests)}")
    except BaseException:
        with ExitStack() as stack:  # all of them, also where one fails
            for owner, update in zip(owners, updates, strict=True):
                stack.callback(owner.give_up, update)
            if folder is not None:
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
        raise
    staging.keep_only(folder)
    return digests.pop()


def _outbox(updates: Sequence[Update], packet_bytes: int) -> Outbox | None:
    """Return what sends packets to all engines; None where they read files."""
    link = updates[0].link
    if link is None:
        return None

    def send(entries: list[Entry], packet: torch.Tensor) -> None:
        for update in updates:
            update.send(entries, packet)

    return Outbox(send, link.device, packet_bytes)
