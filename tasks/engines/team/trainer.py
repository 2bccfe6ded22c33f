"""A Trainer over all ranks, used from the controller.

Every rank makes the same call on its own trainer, which divides the work among the ranks; the
controller's results are complete. All ranks receive an outline of the batch; each requests and
receives only the share that its trainer computes: tokens from the controller, routes from the rank
that recorded them, where it still has them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import distributed as dist

from tasks.algorithms.routing import Traces, in_layers
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.partial_batch import AnyBatch, Share, SharingTrainer, outline
from tasks.engines.protocols import NO_AUXILIARY, LossFn, TokenBatch, TokenScores, Trainer
from tasks.engines.recording_loss import LossCall, RecordingLoss
from tasks.engines.team import payloads
from tasks.engines.team.controller import Controller
from tasks.engines.team.member import Member


@dataclass(frozen=True, slots=True)
class OpenTrainer:
    """Open this rank's trainer."""

    number: int
    make: Callable[[], Trainer]

    def execute(self, member: Member) -> None:
        member.trainers[self.number] = self.make()


@dataclass(frozen=True, slots=True)
class Score:
    """A forward pass."""

    number: int
    batch: AnyBatch
    temperature: float
    record_routes: bool

    def execute(self, member: Member) -> None:
        trainer = member.trainers[self.number]
        batch = _receive_part(self.batch, trainer, member)
        trainer.score(batch, temperature=self.temperature, record_routes=self.record_routes)


@dataclass(frozen=True, slots=True)
class TrainerUpdate:
    """An optimizer step; the ranks that speak then send their loss calls."""

    number: int
    batch: AnyBatch
    loss: LossFn
    temperature: float
    learning_rate: float
    auxiliary: Auxiliary

    def execute(self, member: Member) -> None:
        trainer = member.trainers[self.number]
        trainer.update(
            _receive_part(self.batch, trainer, member),
            self.loss,
            temperature=self.temperature,
            learning_rate=self.learning_rate,
            auxiliary=self.auxiliary,
        )
        if isinstance(self.loss, RecordingLoss):
            with member.failures.name_failed_rank():
                _send_calls(self.loss.calls, member.commands)


def _receive_part(batch: AnyBatch, trainer: Trainer, member: Member) -> TokenBatch:
    """Request this rank's share of an outlined batch from the controller.

    Raises:
        EngineError: a rank exited.
    """
    if isinstance(batch, TokenBatch):
        return batch
    assert isinstance(trainer, SharingTrainer)
    share = trainer.share(batch)
    with member.failures.name_failed_rank():
        parts = _receive_share(share, member)
    # A sharing trainer takes both.
    return cast(TokenBatch, replace(batch, share=share, parts=parts))


def _receive_share(share: Share, member: Member) -> tuple[TokenBatch, ...]:
    """Request a share and receive its buckets, via the first rank that has the same share.

    That rank receives them from the controller, without the routes that other ranks recorded, and
    these from the ranks that did. Returns when all ranks have theirs.
    """
    group = member.commands
    payloads.send(share, 0, group)
    rank = member.rank_info.rank
    parties, transfers = payloads.receive_broadcast(group)
    first, *others = next(ranks for ranks in parties if rank in ranks)
    moving, arriving = _exchange_routes(member, transfers)
    parts = []
    for _ in share.buckets:
        part = payloads.recv(0 if rank == first else first, group)
        if rank == first:
            part = _with_routes(part, arriving)
        for other in others if rank == first else ():
            payloads.send(part, other, group)
        parts.append(part)
    # Last: of two ranks that send to each other, each would wait for the other to receive.
    for work in moving:
        work.wait()
    # Engines' collectives have a shorter limit than others may still need for their shares.
    dist.barrier(group)
    return tuple(parts)


Transfer = tuple[int, int, str, tuple[int, ...], tuple[int, int, int], str]
"""Transfer of routes: the rank that recorded them, the one that needs them, their digest, layers,
shape [T, L, K] with these layers, and dtype. It is sent under its number in the list, from 1."""


def _exchange_routes(
    member: Member, transfers: Sequence[Transfer]
) -> tuple[list[dist.Work], Iterator[torch.Tensor]]:
    """Start this rank's part of all transfers.

    Returns:
        What it sends, to be waited for, and what it receives, in order, each when it has arrived.
    """
    rank, group = member.rank_info.rank, member.commands
    moving: list[dist.Work] = []
    arriving: list[tuple[torch.Tensor, dist.Work | None]] = []
    for tag, (recorder, receiver, digest, layers, shape, dtype) in enumerate(transfers, start=1):
        if rank == recorder:
            found_TLK = np.ascontiguousarray(in_layers(member.routes[digest], layers))
            tensor = torch.from_numpy(found_TLK if found_TLK.flags.writeable else found_TLK.copy())
            if rank == receiver:
                arriving.append((tensor, None))
            else:
                moving.append(_started(dist.isend(payloads.flat(tensor), receiver, group, tag)))
        elif rank == receiver:
            tensor = payloads.empty_tensor(dtype, list(shape))
            work = _started(dist.irecv(payloads.flat(tensor), recorder, group, tag))
            arriving.append((tensor, work))
    return moving, _arrived(arriving)


def _started(work: dist.Work | None) -> dist.Work:
    assert work is not None  # both ranks are of the group
    return work


def _arrived(arriving: list[tuple[torch.Tensor, dist.Work | None]]) -> Iterator[torch.Tensor]:
    for tensor, work in arriving:
        if work is not None:
            work.wait()
        yield tensor


def _with_routes(part: TokenBatch, arriving: Iterator[torch.Tensor]) -> TokenBatch:
    """Put the routes into a bucket that arrive from the ranks that recorded them."""
    routes = part.experts_NTLK
    if not isinstance(routes, Traces) or not routes.digests:
        return part
    pairs = zip(routes.of_sequences, routes.digests, strict=True)
    sequences = tuple(next(arriving).numpy() if one is None and of else one for one, of in pairs)
    return replace(part, experts_NTLK=replace(routes, of_sequences=sequences))


def _send_calls(calls: Sequence[LossCall], group: dist.ProcessGroup) -> None:
    """Name this rank's loss calls to the controller; send those that it asks for."""
    payloads.send([call.key for call in calls], 0, group)
    for place in payloads.receive_broadcast(group)[dist.get_rank(group)]:
        payloads.send(calls[place], 0, group)


def _receive_calls(loss: RecordingLoss, group: dist.ProcessGroup) -> None:
    """Add the calls of the other ranks, each micro-batch from the first rank that has it."""
    keys = {call.key for call in loss.calls}
    requests: list[list[int]] = [[]]
    for rank in range(1, dist.get_world_size(group)):
        requests.append([])
        for place, key in enumerate(payloads.recv(rank, group)):
            if key not in keys:
                keys.add(key)
                requests[rank].append(place)
    payloads.broadcast(requests, group)
    for rank, places in enumerate(requests):
        loss.calls.extend(payloads.recv(rank, group) for _ in places)


@dataclass(frozen=True, slots=True)
class GatherWeights:
    """Take part in gathering the weights."""

    number: int

    def execute(self, member: Member) -> None:
        # To the end: gathering is a collective, and a rank that stops leaves the others waiting.
        for _ in member.trainers[self.number].weights():
            pass


@dataclass(frozen=True, slots=True)
class Save:
    """Write this rank's part of the state."""

    number: int
    folder: Path

    def execute(self, member: Member) -> None:
        member.trainers[self.number].save(self.folder)


@dataclass(frozen=True, slots=True)
class Restore:
    """Read this rank's part of a state."""

    number: int
    folder: Path

    def execute(self, member: Member) -> None:
        member.trainers[self.number].restore(self.folder)


@dataclass(frozen=True, slots=True)
class Export:
    """Take part in writing a model directory."""

    number: int
    folder: Path

    def execute(self, member: Member) -> None:
        member.trainers[self.number].export(self.folder)


@dataclass(frozen=True, slots=True)
class CloseTrainer:
    """Free this rank's trainer."""

    number: int

    def execute(self, member: Member) -> None:
        member.trainers.pop(self.number).close()


class TeamTrainer:
    """A Trainer whose calls are made on every rank.

    Args:
        controller: of the team.
        make: opens a rank's own trainer; picklable.
    """

    def __init__(self, controller: Controller, make: Callable[[], Trainer]) -> None:
        self._controller = controller
        self.number = controller.number()
        with controller.commands.together(OpenTrainer(self.number, make)):
            self.local = make()

    def score(self, batch: TokenBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        """Log-probabilities and entropies without gradient."""
        command = Score(self.number, self._outline_for_ranks(batch), temperature, record_routes)
        with self._controller.commands.together(command):
            self._send_shares(batch)
            return self.local.score(batch, temperature=temperature, record_routes=record_routes)

    def update(
        self,
        batch: TokenBatch,
        loss: LossFn,
        *,
        temperature: float,
        learning_rate: float,
        auxiliary: Auxiliary = NO_AUXILIARY,
    ) -> dict[str, float]:
        """One optimizer step on the whole batch; a RecordingLoss gets the calls of all ranks."""
        command = TrainerUpdate(
            self.number, self._outline_for_ranks(batch), loss, temperature, learning_rate, auxiliary
        )
        with self._controller.commands.together(command):
            self._send_shares(batch)
            metrics = self.local.update(
                batch,
                loss,
                temperature=temperature,
                learning_rate=learning_rate,
                auxiliary=auxiliary,
            )
            if isinstance(loss, RecordingLoss):
                _receive_calls(loss, self._controller.member.commands)
        return metrics

    def _outline_for_ranks(self, batch: TokenBatch) -> AnyBatch:
        """The message to all ranks: an outline, or the batch for trainers that do not divide it."""
        return outline(batch) if isinstance(self.local, SharingTrainer) else batch

    def _send_shares(self, batch: TokenBatch) -> None:
        """Send the other ranks their shares, one bucket in memory at a time.

        Ranks with the same share are consecutive: the first of them forwards it. Returns when all
        ranks have theirs.
        """
        if not isinstance(self.local, SharingTrainer):
            return
        group = self._controller.member.commands
        ranks_of: dict[Share, list[int]] = {}
        for rank in range(1, dist.get_world_size(group)):
            ranks_of.setdefault(payloads.recv(rank, group), []).append(rank)
        receivers = {share: first for share, (first, *_) in ranks_of.items()}
        payloads.broadcast((list(ranks_of.values()), self._transfers(batch, receivers)), group)
        for share, first in receivers.items():
            for bucket in share.buckets:
                rows = torch.tensor(bucket, dtype=torch.int64)
                part = batch.select(rows, share.layers)
                payloads.send(self._without_recorded(part), first, group)
        dist.barrier(group)  # as in _receive_share

    def _transfers(self, batch: TokenBatch, receivers: Mapping[Share, int]) -> list[Transfer]:
        """Which routes the ranks that recorded them send, in the order of the shares."""
        routes, recorders = batch.experts_NTLK, self._controller.member.recorders
        if not isinstance(routes, Traces) or not routes.digests:
            return []
        transfers: list[Transfer] = []
        for share, receiver in receivers.items():
            if not share.layers:
                continue
            for row in (row for bucket in share.buckets for row in bucket):
                digest, one_TLK = routes.digests[row], routes.of_sequences[row]
                if one_TLK is not None and digest in recorders:
                    shape = (len(one_TLK), len(share.layers), routes.k)
                    end = digest, share.layers, shape, str(one_TLK.dtype)
                    transfers.append((recorders[digest], receiver, *end))
        return transfers

    def _without_recorded(self, part: TokenBatch) -> TokenBatch:
        """Leave out the routes that other ranks send."""
        routes, recorders = part.experts_NTLK, self._controller.member.recorders
        if not isinstance(routes, Traces) or not routes.digests or not routes.num_layers:
            return part
        pairs = zip(routes.of_sequences, routes.digests, strict=True)
        sequences = tuple(None if digest in recorders else one for one, digest in pairs)
        return replace(part, experts_NTLK=replace(routes, of_sequences=sequences))

    def weights(self) -> "TeamWeights":
        """The policy's tensors under Hugging Face names."""
        return TeamWeights(self._controller, self)

    def save(self, folder: Path) -> None:
        """Write all parts of the state; the folder is on a shared disk."""
        with self._controller.commands.together(Save(self.number, folder)):
            self.local.save(folder)

    def restore(self, folder: Path) -> None:
        """Restore exactly the state that `save` wrote."""
        with self._controller.commands.together(Restore(self.number, folder)):
            self.local.restore(folder)

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer."""
        with self._controller.commands.together(Export(self.number, folder)):
            self.local.export(folder)

    def close(self) -> None:
        """Free the trainers of all ranks; after a failure, the processes end instead."""
        if self._controller.is_lost:
            return
        with self._controller.commands.together(CloseTrainer(self.number)):
            self.local.close()


class TeamWeights(Iterator[tuple[str, torch.Tensor]]):
    """The weights of a TeamTrainer.

    Nothing is sent before the first tensor is requested: an engine of the same team loads each
    rank's tensors locally and requests none here.
    """

    def __init__(self, controller: Controller, trainer: TeamTrainer) -> None:
        self.trainer = trainer
        self._controller = controller
        self._stream: Iterator[tuple[str, torch.Tensor]] | None = None

    def __next__(self) -> tuple[str, torch.Tensor]:
        if self._stream is None:
            self._stream = self._gathered()
        return next(self._stream)

    def _gathered(self) -> Iterator[tuple[str, torch.Tensor]]:
        with self._controller.commands.together(GatherWeights(self.trainer.number)):
            local = self.trainer.local.weights()
            try:
                for item in local:  # noqa: UP028 - `yield from` closes the trainer's generator first
                    yield item
            except GeneratorExit:  # the workers iterate to the end, and so must this rank
                for _ in local:
                    pass
