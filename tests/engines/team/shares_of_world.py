"""What ranks of a team are sent of a batch, noted by trainers that compute nothing.

Letters: N sequences, T tokens, L MoE layers, K experts per token.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

import numpy as np
import torch

from tasks.engines.partial_batch import AnyBatch, Share
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.engines.team.controller import current, in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.trainer import TeamTrainer


@dataclass(frozen=True, slots=True)
class Seen:
    """One batch on one rank."""

    share: Share
    parts: tuple[TokenBatch, ...]
    """What it computes, as it finds it: by bucket."""
    route_bytes: int
    all_bytes: int
    """Of all tensors that it was sent."""


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
        held = (batch,) if isinstance(batch, TokenBatch) else batch.held
        route_bytes = sum(memory(one.experts_NTLK) for one in held)
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
