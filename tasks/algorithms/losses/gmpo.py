"""GMPO: the geometric mean of a sequence's token ratios, each clipped in log space.

Source: arXiv 2507.20673. The objective of a sequence is A exp(mean of d~), where d~ is the token's
log-ratio clipped on the side that the advantage moves to: above clip_high if A > 0, below
-clip_low otherwise. Both widths are of log-ratios; the paper's are 0.4. A clipped token keeps its
part of the mean and has no gradient; so does one with advantage 0, which a mask left out.
Differs: an advantage is one number per sequence; that of a sequence is the mean of its tokens' that
are not 0 (importance weights against mismatch differ by token), so token-level advantages are no
part of it.
Letters: N sequences, T tokens.
"""

from typing import ClassVar

import torch

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    MAX_LOG_RATIO,
    RangedLoss,
    sequence_mean_weights,
    unclipped,
    width,
)


class GMPO(RangedLoss):
    """Geometric-mean policy optimisation."""

    token_advantages: ClassVar[bool] = False

    clip_low: float = width(0.4, "of a log-ratio, below; GMPO 0.4")
    clip_high: float = width(0.4, "of a log-ratio, above; GMPO 0.4")

    def plan(self, step: StepTokens) -> TokenPlan:
        """Weigh the tokens of a sequence equally."""
        return unclipped(step.mask_NT, sequence_mean_weights(step.mask_NT))

    def objective(
        self,
        logprobs_NT: torch.Tensor,
        old_logprobs_NT: torch.Tensor,
        advantages_NT: torch.Tensor,
        plan: TokenPlan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the objective [N] and the tokens that were clipped [N, T]."""
        weights_NT = plan.weights_NT
        share_N = weights_NT.sum(dim=1)
        within_NT = weights_NT / share_N[:, None].clamp(min=torch.finfo(weights_NT.dtype).tiny)
        gap_NT = (logprobs_NT - old_logprobs_NT).masked_fill(weights_NT <= 0, 0.0)
        pushed_NT = within_NT * (advantages_NT != 0)
        pushed_N = pushed_NT.sum(dim=1).clamp(min=torch.finfo(weights_NT.dtype).tiny)
        advantage_N = (advantages_NT * pushed_NT).sum(dim=1) / pushed_N
        gap_NT = torch.where(pushed_NT > 0, gap_NT, gap_NT.detach())
        kept_NT = torch.where(
            advantage_N[:, None] > 0,
            gap_NT.clamp(max=self.clip_high),
            gap_NT.clamp(min=-self.clip_low),
        )
        mean_N = (kept_NT * within_NT).sum(dim=1).clamp(max=MAX_LOG_RATIO)
        return share_N * advantage_N * mean_N.exp(), kept_NT != gap_NT
