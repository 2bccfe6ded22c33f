"""SAPO: a soft gate of the token ratio instead of a clip.

Source: arXiv 2511.20347. The objective of a token is (4 / tau) sigmoid(tau (r - 1)) A, one mean per
sequence. Its gradient is that of the ratio times 4 s (1 - s): 1 at r = 1, and less the farther the
ratio is from 1 on either side, so no token loses all of it. At r = 1 the value is 2 A / tau: values
of this loss are not comparable with those of a clipped one.
Letters: N sequences, T tokens.
"""

import torch

from tasks.algorithms.losses.protocol import Loss, StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import sequence_mean_weights, token_ratios, unclipped

TAU_GAIN, TAU_LOSS = 1.0, 1.05
"""Temperatures of tokens with an advantage above 0 and of all others, whose gate closes earlier."""


class SAPO(Loss):
    """Soft adaptive policy optimisation; it has no settings."""

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
        """Return the gated objective [N]; no token is clipped."""
        ratio_NT = token_ratios(logprobs_NT, old_logprobs_NT, plan)
        tau_NT = torch.where(advantages_NT > 0, TAU_GAIN, TAU_LOSS)
        gated_NT = 4.0 / tau_NT * torch.sigmoid(tau_NT * (ratio_NT - 1.0)) * advantages_NT
        return (gated_NT * plan.weights_NT).sum(dim=1), torch.zeros_like(plan.weights_NT).bool()
