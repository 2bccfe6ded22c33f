# pyright: reportMissingImports=false
"""One hand-over of weights to engines in processes of their own: all of them have it, or none.

The tensors always go into a folder, which an engine that has to start anew is opened on. Where the
workers share a group with the owner, they get every tensor over it while the folder is written;
where not, they read the folder when it is complete.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
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

    def __init__(self, process: Process, packet_bytes: int) -> None:
        self.lost: Lost | None = None
        self.begun = False
        """Whether the process has lost the weights of before."""
        self._process = process
        link = process.link
        self._outbox = None if link is None else Outbox(self._send, link.device, packet_bytes)
        self._flying: tuple[Future[list[Any]], Any, torch.Tensor] | None = None

    def take(self, name: str, tensor: torch.Tensor) -> None:
        """Send a tensor on its way, where there is one."""
        if self._outbox is None or self.lost is not None:
            return
        try:
            self._outbox.add(name, tensor)
        except Lost as error:
            self.lost = error

    def end(self, folder: Path) -> str:
        """Finish; return the digest of what the workers received.

        Raises:
            Lost: by now, or before.
            EngineError: vLLM failed, or its workers received different tensors.
        """
        if self.lost is not None:
            raise self.lost
        if self._outbox is None:
            for path in files_of(folder):
                self._process.answer(self._part(path=str(path)))
        else:
            self._outbox.flush()
            self._settle()
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

    def _send(self, entries: list[Entry], packet: torch.Tensor) -> None:
        """Send a packet when the one before has been taken in: two are held at most."""
        self._settle()
        link = self._process.link
        assert link is not None
        taken = self._part(entries=entries)
        try:
            self._flying = (taken, link.send(packet), packet)
        except RuntimeError as error:
            raise Lost(f"vLLM's workers are gone: {error}") from error

    def _settle(self) -> None:
        if self._flying is None:
            return
        taken, sending, _ = self._flying
        self._flying = None
        self._process.answer(taken)
        try:
            sending.wait()
        except RuntimeError as error:
            raise Lost(f"vLLM's workers are gone: {error}") from error


class Owner(Protocol):
    """What is told of a hand-over."""

    def begin(self) -> Update:
        """Start one."""
        ...

    def end(self, update: Update, folder: Path) -> str:
        """Have the weights of the folder; return the digest of what was received."""
        ...

    def give_up(self, update: Update) -> None:
        """Have the weights of before."""
        ...


def hand_over(
    owners: Sequence[Owner], staging: Staging, weights: Iterator[tuple[str, torch.Tensor]]
) -> str:
    """Give all engines the same weights.

    Raises:
        EngineError: the tensors do not fit, or an update failed; all engines are as before.
    """
    updates = [owner.begin() for owner in owners]

    def pass_on(name: str, tensor: torch.Tensor) -> None:
        for update in updates:
            update.take(name, tensor)

    try:
        folder = staging.write(weights, beside=pass_on)
        pairs = list(zip(owners, updates, strict=True))
        digests = {owner.end(update, folder) for owner, update in pairs}
        if len(digests) != 1:
            raise EngineError(f"replicas received different weights: {sorted(digests)}")
    except BaseException:
        for owner, update in zip(owners, updates, strict=True):
            owner.give_up(update)
        raise
    staging.keep_only(folder)
    return digests.pop()
