"""Off-policy mask: wrong responses that the policy has left are not pushed away from any further.

Source: DeepSeek-V3.2 (arXiv 2512.02556), its off-policy sequence mask; the paper does not print the
bound, TRL's is 0.5. Every update judges again, by the policy in training.
Letters: N sequences, T tokens.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field

from data_schemas.ledgers import TokenUse
from tasks.algorithms.terms.protocol import (
    EngineGap,
    StepEffect,
    StepSignal,
    Term,
    UpdateEffect,
    UpdateSignal,
    mean_over,
)

ROLLOUT = "rollout_logprobs"
"""Column: log-probabilities of the rollout engine."""


class Stale(Term):
    """Leave out a response with a negative advantage that has become too improbable."""

    engine_gap: ClassVar[EngineGap] = EngineGap.JUDGES

    above_nats: float = Field(
        default=0.5, gt=0.0, description="largest mean of log(rollout / policy), nats; TRL 0.5"
    )

    def weigh(self, step: StepSignal) -> StepEffect:
        """Book as masked what the first update leaves out; later ones count in `report`."""
        stale_N = is_stale(
            step.old_NT,
            step.rollout_NT,
            step.advantages_NT * step.weights_NT,
            step.kept_NT & (step.plan.weights_NT > 0),
            self.above_nats,
        )
        masked_NT = step.kept_NT & (step.advantages_NT != 0) & stale_N[:, None]
        return StepEffect(held={ROLLOUT: step.rollout_NT}, uses={TokenUse.MASKED: masked_NT})

    def adjust(self, update: UpdateSignal) -> UpdateEffect:
        """Take the advantages of stale responses away."""
        stale_N = is_stale(
            update.logprobs_NT,
            update.columns[ROLLOUT],
            update.advantages_NT,
            update.weights_NT > 0,
            self.above_nats,
        )
        return UpdateEffect(
            advantages_NT=update.advantages_NT.masked_fill(stale_N[:, None], 0.0),
            counts={"stale_share": float(stale_N.sum()) / update.num_sequences},
        )

    def report(self, updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Share of an update's responses that are left out."""
        return {"policy/stale_share": mean_over(updates, "stale_share")}


def is_stale(
    logprobs_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    advantages_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    bound: float,
) -> torch.Tensor:
    """Mark responses [N] that the policy has left and should not be pushed away from any further.

    A response is marked if the sum of its advantages is negative and the mean of log(rollout /
    policy) over its tokens exceeds `bound`, nats: one-sided, so that a response whose probability
    rose is never marked. Without tokens, or with advantage 0, it is not.
    """
    gap_NT = (rollout_NT - logprobs_NT.detach()).masked_fill(~mask_NT, 0.0)
    mean_N = gap_NT.sum(dim=1) / mask_NT.sum(dim=1).clamp(min=1)
    return (advantages_NT.masked_fill(~mask_NT, 0.0).sum(dim=1) < 0.0) & (mean_N > bound)
