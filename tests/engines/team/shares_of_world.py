"""What ranks of a team are sent of a batch, noted by trainers that compute nothing.

Letters: N sequences, T tokens, L MoE layers, K experts per token.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import distributed as dist

from data_schemas.machine_settings import Precision
from data_schemas.rollouts import Rollout, RouterTrace, ScoredRollout, StopReason
from data_schemas.verdicts import Verdict
from tasks.engines.partial_batch import AnyBatch, Share
from tasks.engines.protocols import EngineCounters, Request, Sampling, TokenBatch, TokenScores
from tasks.engines.request_queue import CallRequests, Requests
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.rollout import TeamRollout
from tasks.engines.team.trainer import TeamTrainer
from tasks.rl.batch import token_batch


@dataclass(frozen=True, slots=True)
class Seen:
    """One batch on one rank."""

    share: Share
    parts: tuple[TokenBatch, ...]
    """What it computes, as it finds it: by bucket."""
    route_bytes: int
    all_bytes: int
    """Bytes of all tensors that it was sent."""


class NotingTrainer:
    """Computes what its neighbour does: every second sequence and layer, from its pair on."""

    seen: ClassVar[list[Seen]] = []

    def share(self, batch: AnyBatch) -> Share:
        num_layers = (batch.route_shape or (0, 0))[0]
        pair = read_rank_info().rank // 2
        rows = tuple(range(pair, len(batch.lengths_N), 2))
        return Share((rows[:2], rows[2:]), tuple(range(pair, num_layers, 2)))

    def score(self, batch: AnyBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        self.note(batch)
        return TokenScores(torch.zeros(0), torch.zeros(0), None)

    def update(self, batch: AnyBatch, loss, **_) -> dict[str, float]:
        self.note(batch)
        return {}

    def note(self, batch: AnyBatch) -> None:
        share = self.share(batch)
        rows = [torch.tensor(bucket, dtype=torch.int64) for bucket in share.buckets]
        parts = tuple(batch.select(bucket, share.layers) for bucket in rows)
        batches = (batch,) if isinstance(batch, TokenBatch) else batch.parts
        route_bytes = sum(memory(one.experts_NTLK) for one in batches)
        seen = Seen(share, parts, route_bytes, memory(batch))
        self.seen.append(seen)


def memory(item: object) -> int:
    """Bytes behind the tensors of a batch."""
    if isinstance(item, torch.Tensor):
        return item.untyped_storage().nbytes()
    if isinstance(item, np.ndarray):
        return item.nbytes
    if is_dataclass(item):
        return sum(memory(getattr(item, field.name)) for field in fields(item))
    if isinstance(item, tuple):
        return sum(map(memory, item))
    return sum(map(memory, item.values())) if isinstance(item, dict) else 0


def shared(batches: list[TokenBatch]) -> list[Seen]:
    """Score and update on every batch; what this rank saw of each."""

    def lead() -> None:
        trainer = TeamTrainer(current(), NotingTrainer)
        for batch in batches:
            trainer.score(batch, temperature=1.0, record_routes=False)
            trainer.update(batch, len, temperature=1.0, learning_rate=0.0)

    in_team(lead)()
    return NotingTrainer.seen


LIMIT_S = 4
"""Limit of the default group's collectives, in which engines compute."""


class SummingTrainer(NotingTrainer):
    """A trainer whose ranks add something up, within a short limit."""

    def __init__(self) -> None:
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=LIMIT_S))

    def score(self, batch: AnyBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        total = torch.ones(1)
        dist.all_reduce(total)
        return TokenScores(total, total, None)


def slowly_shared(batch: TokenBatch) -> float | None:
    """Score while the last rank takes longer to receive its share than collectives may take."""
    if read_rank_info().rank == read_rank_info().size - 1:
        recv, delays = dist.recv, iter([1.5 * LIMIT_S])

        def slow_recv(*arguments, **others):
            time.sleep(next(delays, 0.0))
            return recv(*arguments, **others)

        dist.recv = slow_recv

    def lead() -> float:
        trainer = TeamTrainer(current(), SummingTrainer)
        return float(trainer.score(batch, temperature=1.0, record_routes=False).logprobs_NT)

    return in_team(lead)()


class RouteEngine:
    """Answers with one token, and routes of its rank's own in two layers of 64 experts."""

    num_experts, policy_version = 64, 0

    def __init__(self) -> None:
        self.counters = EngineCounters()

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        intake = CallRequests(requests, sampling, slots=2)
        while intake.open:
            for request in intake.take():
                yield self._answer(request)
                intake.end(request.problem_id, 0)

    def _answer(self, request: Request) -> Rollout:
        length = len(request.prompt_tokens)
        first = 8 * read_rank_info().rank + length
        experts_TLK = np.arange(first, first + 4, dtype=np.uint8).reshape(1, 2, 2)
        return Rollout(
            problem_id=request.problem_id,
            sample=0,
            prompt_tokens=request.prompt_tokens,
            response_tokens=np.ones(1, dtype=np.int32),
            logprobs=np.zeros(1, dtype=np.float32),
            trace=RouterTrace(experts_TLK.repeat(length, axis=0)),
            stop_reason=StopReason.END,
            policy_version=self.policy_version,
        )

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        self.policy_version = version
        return ""

    def close(self) -> None:
        """Nothing is held."""


def recorded() -> tuple[list[Seen], list[torch.Tensor]]:
    """Train on responses of all ranks while rank 0 has blank routes of the others; then on the
    same with its own when the ranks have forgotten them. What this rank saw, and what was recorded.
    """

    def lead() -> list[torch.Tensor]:
        engine = TeamRollout(
            current(),
            RouteEngine,
            replicas=((0,), (1,), (2,), (3,)),
            dedicated=False,
            precision=Precision.FP32,
        )
        trainer = TeamTrainer(current(), NotingTrainer)
        roll_out = partial(engine.generate, sampling=Sampling(1, 1.0, 0))
        requests = [
            Request(str(length), np.arange(length, dtype=np.int32), 1) for length in range(1, 9)
        ]
        batch = _batch(roll_out(requests))
        known = batch.experts_NTLK
        others = zip(known.of_sequences, known.digests, strict=True)
        blank = tuple(np.zeros_like(one) if digest else one for one, digest in others)
        trainer.score(
            replace(batch, experts_NTLK=replace(known, of_sequences=blank)),
            temperature=1.0,
            record_routes=False,
        )
        engine.load_weights(iter(()), 1)
        list(roll_out(requests[:1]))
        trainer.score(batch, temperature=1.0, record_routes=False)
        engine.close()
        return list(batch.padded_routes_NTLK)

    found = in_team(lead)()
    return NotingTrainer.seen, found or []


def _batch(rollouts: Iterator[Rollout]) -> TokenBatch:
    ordered = sorted(rollouts, key=lambda one: len(one.prompt_tokens))
    verdict = Verdict(score=1.0, reason="correct")
    return token_batch([ScoredRollout(one, "", verdict, 0.0) for one in ordered], use_routes=True)
