"""CISPO: every token keeps its gradient; its importance weight is capped and detached.

Source: MiniMax-M1 (arXiv 2506.13585) eq. 4 and 5: sg[clip(r)] * A * log pi, one mean over
tokens. The paper sets no lower bound in effect, so there is none here; the cap is 1 + clip_high.
Differs: the mean is over the tokens of the step, as in `dapo`.
Differs: TRL's `epsilon_high` is the cap itself, not its distance from 1.
Letters: N sequences, T tokens.
"""

from typing import ClassVar

import torch

from tasks.algorithms.losses.protocol import Loss, StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    DETACHED,
    batch_mean_weights,
    clip_plan,
    clipped_objective,
    token_groups,
    width,
)


class CISPO(Loss):
    """Clipped importance sampling policy optimisation."""

    off_policy: ClassVar[frozenset[str]] = frozenset(("clip_high",))

    clip_high: float = width(0.28, "cap of the weight, as its distance from 1")

    @property
    def clip_range(self) -> tuple[float, float]:
        """Ratios are at least 0, so that a width of 1 is no lower bound."""
        return 1.0, self.clip_high

    def plan(self, step: StepTokens) -> TokenPlan:
        """DAPO's groups and weights."""
        mask_NT = step.mask_NT
        return clip_plan(mask_NT, token_groups(mask_NT), batch_mean_weights(step), self.clip_range)

    def objective(
        self,
        logprobs_NT: torch.Tensor,
        old_logprobs_NT: torch.Tensor,
        advantages_NT: torch.Tensor,
        plan: TokenPlan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the objective [N] and the capped tokens [N, T]."""
        return clipped_objective(
            logprobs_NT, old_logprobs_NT, advantages_NT, plan, ratio_mode=DETACHED
        )
