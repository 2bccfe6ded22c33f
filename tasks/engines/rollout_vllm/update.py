# pyright: reportMissingImports=false
"""One weight sync to engines in separate processes: all of them receive it, or none.

The tensors are always written to a folder, on which a restarted engine is opened. Workers that
share a group with the owner receive every tensor over it while the folder is written; others read
the folder when it is complete.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import torch

from tasks.engines.rollout_vllm.broadcast import Entry, PacketSender
from tasks.engines.rollout_vllm.process import LostProcess, Process
from tasks.engines.rollout_vllm.staging import Staging, files_of
from tasks.errors import EngineError


class WeightUpdate:
    """vLLM's update of one process: start, parts, finish.

    After a process is lost, nothing more is sent to it; `end` raises, since a new process needs
    the complete folder.
    """

    def __init__(self, process: Process) -> None:
        self.failure: LostProcess | None = None
        self.has_started = False
        """Whether the process no longer has the previous weights."""
        self.link = process.link
        self._process = process
        self._flying: tuple[Future[list[Any]], Any] | None = None

    def send(self, entries: list[Entry], packet: torch.Tensor) -> None:
        """Send a packet when the previous one is installed: at most two are held."""
        if self.failure is not None:
            return
        assert self.link is not None
        try:
            self._settle()
            part = self._part(entries=entries)
            self._flying = (part, self.link.send(packet))
        except LostProcess as error:
            # Without its traceback, which refers to the packet.
            self.failure = error.with_traceback(None)
        except EngineError:
            raise
        except RuntimeError as error:
            self.failure = LostProcess(f"vLLM's workers are gone: {error}")

    def end(self, folder: Path) -> str:
        """Finish; return the digest of what the workers received.

        Raises:
            LostProcess: the process was lost during the update.
            EngineError: vLLM failed, or its workers received different tensors.
        """
        if self.failure is not None:
            raise self.failure
        self._settle()
        for path in files_of(folder) if self.link is None else ():
            self._process.answer(self._part(path=str(path)))
        self._process.call_and_wait("finish_weight_update")
        digests = set(self._process.call_and_wait("received_digest"))
        if len(digests) != 1:
            raise EngineError(f"workers of one engine received different weights: {digests}")
        self._process.resume()
        return digests.pop()

    def _part(self, **info: Any) -> Future[list[Any]]:
        if not self.has_started:
            self.has_started = True
            self._process.pause()
            self._process.call_and_wait("start_weight_update")
        return self._process.call("update_weights", update_info=info)

    def _settle(self) -> None:
        """Wait until the last packet is installed."""
        if self._flying is not None:
            part, sending = self._flying
            self._flying = None
            self._process.answer(part)
            sending.wait()


class Owner(Protocol):
    """An engine process that takes part in a weight sync."""

    def begin(self) -> WeightUpdate: ...

    def end(self, update: WeightUpdate, folder: Path) -> str:
        """Finish on the weights of the folder; return the digest of what was received."""
        ...

    def abort(self, update: WeightUpdate) -> None:
        """Return to the previous weights."""
        ...


def sync_weights(
    owners: Sequence[Owner], staging: Staging, weights: Iterator[tuple[str, torch.Tensor]]
) -> str:
    """Send the same weights to all engines.

    Raises:
        EngineError: the tensors do not fit, or an update failed; all engines are unchanged.
    """
    updates = [owner.begin() for owner in owners]
    folder = None
    try:
        folder = staging.write(weights, outbox=_outbox(updates, staging.chunk_bytes))
        digests = {owner.end(update, folder) for owner, update in zip(owners, updates, strict=True)}
        if len(digests) != 1:
            raise EngineError(f"replicas received different weights: {sorted(digests)}")
    except BaseException:
        with ExitStack() as stack:  # all of them, also if one fails
            for owner, update in zip(owners, updates, strict=True):
                stack.callback(owner.abort, update)
            if folder is not None:
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
        raise
    staging.keep_only(folder)
    return digests.pop()


def _outbox(updates: Sequence[WeightUpdate], packet_bytes: int) -> PacketSender | None:
    """Return a sender of packets to all engines; None if they read files."""

    link = updates[0].link
    if link is None:
        return None

    def send(entries: list[Entry], packet: torch.Tensor) -> None:
        for update in updates:
            update.send(entries, packet)

    return PacketSender(send, link.device, packet_bytes)
