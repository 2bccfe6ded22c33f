"""Updates whose sequences are dealt to the ranks of a team, by a trainer that only calls the loss.

Letters: N sequences.
"""

from collections.abc import Sequence

import torch

from data_schemas.rl_settings import RLSettings
from tasks.engines.partial_batch import AnyBatch, Share
from tasks.engines.protocols import TokenBatch
from tasks.engines.recording_loss import RecordingLoss
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.trainer import TeamTrainer
from tasks.rl.objective import policy_loss


class DealingTrainer:
    """Every rank computes the loss of every second sequence, one at a time."""

    def share(self, batch: AnyBatch) -> Share:
        ranks = read_rank_info()
        rows = range(ranks.rank, len(batch.lengths_N), ranks.size)
        return Share(tuple((row,) for row in rows), ())

    def update(self, batch: AnyBatch, loss, **_) -> dict[str, float]:
        share = self.share(batch)
        for bucket in share.buckets:
            part = batch.select(torch.tensor(bucket), share.layers)
            loss(part.columns["old_logprobs"], part)
        return {}


def trained_tokens(
    settings: RLSettings, training: TokenBatch, updates: Sequence[torch.Tensor]
) -> list[dict[int, float]]:
    """Tokens that the loss counts, by update and sequence; over all ranks on rank 0."""

    def lead() -> list[dict[int, float]]:
        team = current()
        trainer = DealingTrainer() if team is None else TeamTrainer(team, DealingTrainer)
        found = []
        for rows_N in updates:
            loss = RecordingLoss(policy_loss(settings, len(rows_N), settings.terms))
            trainer.update(training.select(rows_N), loss, temperature=1.0, learning_rate=0.0)
            found.append({int(call.rows_M): call.metrics["tokens"] for call in loss.calls})
        return found

    return in_team(lead)()
