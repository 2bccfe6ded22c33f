"""One RolloutEngine over the engines of several ranks, used from the controller.

A replica is one engine: a rank, or a tensor-parallel group of ranks that make the same calls and
whose first rank represents it. Replicas in the ranks' own processes share a queue of requests
(`Dealer`). To dedicated ones, whose steps the ranks do not see, requests are dealt at once,
balanced by expected response length. A sequence's random stream is keyed by its name, so the
responses do not depend on the replica.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.machine_settings import Precision
from data_schemas.rollouts import Rollout
from tasks.algorithms.routing import check_trace, route_digest
from tasks.algorithms.scheduling import assign, longest_first
from tasks.engines.protocols import EngineCounters, Request, RolloutEngine, Sampling
from tasks.engines.request_queue import QueueingEngine
from tasks.engines.team import payloads
from tasks.engines.team.controller import Channel, Controller
from tasks.engines.team.inbox import Inbox
from tasks.engines.team.member import Member
from tasks.engines.team.shared_queue import Replicas, queue_of_controller, queue_of_worker
from tasks.engines.team.trainer import TeamWeights
from tasks.engines.weight_sync import Outgoing
from tasks.errors import DataError, EngineError

REPLICA_TOLERANCE = {
    Precision.FP32: 1e-4,
    Precision.BF16: 0.05,
    Precision.FP16: 0.01,
    Precision.FP8: 0.1,
    Precision.INT8: 1e-4,
}
"""Largest mean |dlogp| between replicas with the same weights, nats, from summation order."""


@dataclass(frozen=True, slots=True)
class OpenRollout:
    """Open this rank's part of a replica."""

    number: int
    replicas: Replicas
    make: Callable[[], QueueingEngine]

    def execute(self, member: Member) -> None:
        if any(member.rank_info.rank in ranks for ranks in self.replicas):
            member.engines[self.number] = self.make()


@dataclass(frozen=True, slots=True)
class Generate:
    """Generate the rollouts of this rank's replica; the reply is the engine's counters."""

    number: int
    replicas: Replicas
    parts: tuple[tuple[Request, ...], ...]
    """Requests of every replica; () = they share a queue."""
    samples: int
    """Responses in the queue."""
    sampling: Sampling
    keep: bool
    """The ranks keep the routes that they record, until they are told to forget them."""
    forget: bool
    """Routes of earlier calls were recorded under other weights."""

    def execute(self, member: Member) -> EngineCounters | None:
        rank = member.rank_info.rank
        if self.forget:
            member.routes.clear()
        for place, ranks in enumerate(self.replicas):
            if rank in ranks:
                engine = member.engines[self.number]
                if self.parts:
                    part = self.parts[place]
                else:
                    part = queue_of_worker(member, ranks[0], self.samples, self.sampling.enough)
                for rollout in engine.generate(part, self.sampling) if part else ():
                    if rank == ranks[0]:
                        whole = checked(rollout, engine.num_experts)
                        if self.keep and whole.trace is not None:
                            member.routes[whole.trace.digest] = whole.trace.experts_TLK
                        payloads.send(whole, 0, member.rollouts)
                if rank == ranks[0] > 0:
                    payloads.send(None, 0, member.rollouts)
                    return engine.counters
        return None


@dataclass(frozen=True, slots=True)
class ScoreLogprobs:
    """Log-probabilities from this rank's engine; the replica's representative replies."""

    number: int
    replicas: Replicas
    tokens: tuple[NDArray[np.int32], ...]

    def execute(self, member: Member) -> list[NDArray[np.float32]] | None:
        rank = member.rank_info.rank
        if rank not in {rank for ranks in self.replicas for rank in ranks}:
            return None
        scores = member.engines[self.number].score_logprobs(self.tokens)
        return scores if rank in {ranks[0] for ranks in self.replicas} else None


@dataclass(frozen=True, slots=True)
class SyncWeights:
    """Every rank sends its own trainer's weights to its engine; the reply is their digest."""

    number: int
    trainer: int
    version: int

    def execute(self, member: Member) -> str | None:
        weights = member.trainers[self.trainer].weights()
        return _load_weights(member.engines.get(self.number), weights, self.version)


@dataclass(frozen=True, slots=True)
class ReceiveWeights:
    """Install weights that the controller sends one by one."""

    number: int
    version: int

    def execute(self, member: Member) -> str | None:
        # Named tensors one by one, until there is None.
        weights = iter(partial(payloads.receive_broadcast, member.commands), None)
        return _load_weights(member.engines.get(self.number), weights, self.version)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Give this rank's GPU memory back."""

    number: int

    def execute(self, member: Member) -> None:
        if engine := member.engines.get(self.number):
            engine.sleep()


@dataclass(frozen=True, slots=True)
class CloseRollout:
    """Free this rank's engine."""

    number: int

    def execute(self, member: Member) -> None:
        if engine := member.engines.pop(self.number, None):
            engine.close()
        member.routes.clear()


def _load_weights(
    engine: RolloutEngine | None, weights: Iterator[tuple[str, torch.Tensor]], version: int
) -> str | None:
    """Load weights into an engine; ranks without one still take part in gathering them."""
    digest = None if engine is None else engine.load_weights(weights, version)
    for _ in weights:
        pass
    return digest


class TeamRollout:
    """A RolloutEngine over all replicas.

    Args:
        controller: of the team; rank 0 represents the first replica.
        make: opens a rank's part of an engine; picklable.
        replicas: the ranks of every replica.
        dedicated: the engines have separate processes, so they can run while trainers do.
        precision: of the engines.
    """

    def __init__(
        self,
        controller: Controller,
        make: Callable[[], QueueingEngine],
        *,
        replicas: Replicas,
        dedicated: bool,
        precision: Precision,
    ) -> None:
        self._controller = controller
        self._number = controller.number()
        self._replicas = replicas
        self._dedicated = dedicated
        self._tolerance = REPLICA_TOLERANCE[precision]
        self._channel: Channel = controller.async_group if dedicated else controller.commands
        self._others: dict[int, EngineCounters] = {}
        self._kept_version = -1
        with controller.commands.together(OpenRollout(self._number, replicas, make)):
            self._local = make()

    @property
    def policy_version(self) -> int:
        """Version of the weights that every replica has."""
        return self._local.policy_version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer."""
        return self._local.num_experts

    def slots(self, tokens: float) -> int:
        """Number of sequences that all replicas decode concurrently."""
        return self._local.slots(tokens) * len(self._replicas)

    @property
    def counters(self) -> EngineCounters:
        """Counters of all replicas; those of workers as of their last call."""
        counters = [asdict(one) for one in (self._local.counters, *self._others.values())]
        return EngineCounters(**{name: sum(one[name] for one in counters) for name in counters[0]})

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Distribute the requests; yield rollouts of all replicas as they end."""
        parts = spread_requests(requests, len(self._replicas)) if self._dedicated else ()
        samples = sum(request.num_samples for request in requests)
        member = self._controller.member
        # Dedicated engines roll out while a trainer may ask for the routes of an earlier call.
        keep, version = not self._dedicated, self.policy_version
        forget = keep and version != self._kept_version
        command = Generate(
            self._number, self._replicas, parts, samples, sampling, keep=keep, forget=forget
        )
        with self._channel.together(command) as replies:
            if forget:
                member.recorders.clear()
                self._kept_version = version
            shared, dealer = queue_of_controller(member, self._replicas, requests, sampling.enough)
            senders = [ranks[0] for ranks in self._replicas[1:]]
            inbox = Inbox(
                member, senders, lambda place, room: dealer.ask(place + 1, room), keep=keep
            )
            part = parts[0] if parts else shared
            mine = self._local.generate(part, sampling) if part else iter(())
            rollouts = _merged(mine, inbox)
            try:
                for rollout in rollouts:
                    with self._channel.paused():
                        yield rollout
            except GeneratorExit:  # the workers finish their requests, and so must this rank
                for _ in rollouts:
                    pass
        for rank, counters in enumerate(replies, start=1):
            if isinstance(counters, EngineCounters):
                self._others[rank] = counters

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Log-probabilities of the first replica, after comparison with all others.

        Raises:
            EngineError: a replica computes with other weights.
        """
        command = ScoreLogprobs(self._number, self._replicas, tuple(tokens))
        with self._channel.together(command) as replies:
            scores = self._local.score_logprobs(tokens)
        for rank, theirs in enumerate(replies, start=1):
            if isinstance(theirs, tuple):
                self._compare(rank, np.concatenate(theirs), np.concatenate(scores))
        return scores

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights on every replica; return the digest, the same on all of them.

        Weights of this team's own trainer are not sent between ranks: every rank loads them from
        its own trainer. Other weights are broadcast one tensor at a time.

        Raises:
            EngineError: a replica received something else.
        """
        source = weights.source if isinstance(weights, Outgoing) else weights
        if isinstance(source, TeamWeights):
            mine = Outgoing(source.trainer.local.weights())
            command = SyncWeights(self._number, source.trainer.number, version)
            with self._controller.commands.together(command) as replies:
                digest = _load_weights(self._local, mine, version)
            if isinstance(weights, Outgoing):
                weights.join(mine)
        else:
            with self._controller.commands.together(
                ReceiveWeights(self._number, version)
            ) as replies:
                digest = _load_weights(self._local, self._broadcasting(weights), version)
        assert digest is not None
        for rank, theirs in enumerate(replies, start=1):
            if theirs not in {None, digest}:
                raise EngineError(
                    f"weight sync of version {version}: rank {rank} has "
                    f"{str(theirs)[:12]}, rank 0 has {digest[:12]}; no rollout was made with either"
                )
        return digest

    def sleep(self) -> None:
        """Let every replica release its GPU memory until the next call."""
        with self._channel.together(Sleep(self._number)):
            self._local.sleep()

    def close(self) -> None:
        """Free every replica; after a failure, the processes end instead."""
        if self._controller.is_lost:
            return
        with self._controller.commands.together(CloseRollout(self._number)):
            self._local.close()
        self._controller.member.recorders.clear()

    def _broadcasting(
        self, weights: Iterator[tuple[str, torch.Tensor]]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield tensors for this rank's engine after broadcasting each to all other ranks."""
        for item in weights:
            payloads.broadcast(item, self._controller.member.commands)
            yield item
        payloads.broadcast(None, self._controller.member.commands)

    def _compare(self, rank: int, theirs: NDArray[np.float32], ours: NDArray[np.float32]) -> None:
        # Capped by token, as in the gate (rl/gate.py): a route that rounding flips moves few
        # tokens, but those by up to 10 nats.
        gap = float(np.minimum(np.abs(theirs - ours), 1.0).mean())
        if not gap <= self._tolerance:
            raise EngineError(
                f"weight sync: on canary sequences the engine of rank {rank} is {gap:.3g} "
                f"nats from that of rank 0; rounding explains {self._tolerance}. One of them "
                "computes with other weights than it received."
            )


def _merged(mine: Iterator[Rollout], inbox: Inbox) -> Iterator[Rollout]:
    """Yield the rollouts of this rank and of all others, as they arrive."""
    for rollout in mine:
        yield rollout
        yield from inbox.take_arrived()
    yield from inbox.remaining()


def checked(rollout: Rollout, num_experts: int) -> Rollout:
    """Check and hash the routes of a rollout where they were recorded: rank 0 does neither.

    Raises:
        EngineError: the routes are impossible.
    """
    trace = rollout.trace
    if trace is None:
        return rollout
    try:
        check_trace(trace, len(trace.experts_TLK) + 1, num_experts)
    except DataError as error:
        raise EngineError(f"the rollout engine recorded impossible routes: {error}") from error
    return replace(rollout, trace=replace(trace, digest=route_digest(trace)))


def spread_requests(
    requests: Sequence[Request], num_replicas: int
) -> tuple[tuple[Request, ...], ...]:
    """Balance requests by expected tokens; each part keeps the given order."""
    tokens = [request.expected_tokens * request.num_samples for request in requests]
    parts = assign(tokens, longest_first(tokens), num_replicas)
    return tuple(tuple(requests[job] for job in sorted(part)) for part in parts)
