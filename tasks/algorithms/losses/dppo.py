"""DPPO: a trust region on probabilities, not on their ratio.

Source: arXiv 2602.04879. A token is dropped if its probability moved away from that before the
step, in the direction of its advantage, by more than a bound; all others keep the gradient r A. The
distance is the difference of probabilities (total variation, `dppo`; bounds 0.2) or the Kullback-
Leibler divergence of the two-point distributions (token or not; `dppo_kl`, bound 0.05). So a rare
token may become twenty times as likely, and a likely one not 1.4 times.

clip_high bounds tokens with an advantage above 0, clip_low all others.
Differs: a penalty of 1e-3 (log r)^2 on all tokens, those dropped or without an advantage too; it is
prime-rl's. Distances are from pi_old, the trainer's policy before the step, where prime-rl and verl
take the rollout engine's. With `engines.mismatch.old_policy: rollout` both the ratio and the
distances are from that, as theirs.
Letters: N sequences, T tokens.
"""

from abc import abstractmethod
from typing import ClassVar

import torch

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    RangedLoss,
    batch_mean_weights,
    token_ratios,
    unclipped,
    width,
)

SQUARED_LOG_RATIO = 1e-3
"""Weight of the penalty."""


def total_variation(new_NT: torch.Tensor, old_NT: torch.Tensor) -> torch.Tensor:
    """Return |pi - pi_old| of the sampled token."""
    return (new_NT.exp() - old_NT.exp()).abs()


def binary_kl(new_NT: torch.Tensor, old_NT: torch.Tensor) -> torch.Tensor:
    """Return KL(old || new) of the distributions over "this token" and "any other", in nats."""
    other_old_NT, other_new_NT = -torch.expm1(old_NT), -torch.expm1(new_NT)
    others_NT = torch.xlogy(other_old_NT, other_old_NT / other_new_NT)
    # Where the old policy gave the token all mass, there is no other.
    return old_NT.exp() * (old_NT - new_NT) + others_NT.masked_fill(other_old_NT <= 0, 0.0)


class _Divergence(RangedLoss):
    """A mask on the distance of the probabilities, whichever it is."""

    acts_on_all: ClassVar[bool] = True

    @abstractmethod
    def distance(self, new_NT: torch.Tensor, old_NT: torch.Tensor) -> torch.Tensor:
        """Return how far the probability of the sampled token moved; log-probabilities in."""

    def plan(self, step: StepTokens) -> TokenPlan:
        """Weigh all tokens of the batch equally."""
        return unclipped(step.mask_NT, batch_mean_weights(step))

    def objective(
        self,
        logprobs_NT: torch.Tensor,
        old_logprobs_NT: torch.Tensor,
        advantages_NT: torch.Tensor,
        plan: TokenPlan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the objective [N] and the tokens that were dropped [N, T]."""
        outside_NT = plan.weights_NT <= 0
        gap_NT = (logprobs_NT - old_logprobs_NT).masked_fill(outside_NT, 0.0)
        with torch.no_grad():
            gains_NT = advantages_NT > 0
            bound_NT = torch.where(gains_NT, self.clip_high, self.clip_low)
            away_NT = torch.where(gains_NT, gap_NT > 0, gap_NT < 0)
            far_NT = self.distance(logprobs_NT, old_logprobs_NT) > bound_NT
            dropped_NT = away_NT & far_NT & ~outside_NT
        ratio_NT = token_ratios(logprobs_NT, old_logprobs_NT, plan)
        gain_NT = (ratio_NT * advantages_NT).masked_fill(dropped_NT, 0.0)
        value_NT = gain_NT - SQUARED_LOG_RATIO * gap_NT.square()
        return (value_NT * plan.weights_NT).sum(dim=1), dropped_NT


class DPPO(_Divergence):
    """Divergence proximal policy optimisation, by total variation."""

    clip_low: float = width(0.2, "of a probability, of tokens without a gain; DPPO 0.2")
    clip_high: float = width(0.2, "of a probability, of tokens with a gain; DPPO 0.2")

    def distance(self, new_NT: torch.Tensor, old_NT: torch.Tensor) -> torch.Tensor:
        """See `total_variation`."""
        return total_variation(new_NT, old_NT)


class DPPOKL(_Divergence):
    """The same by the two-point Kullback-Leibler divergence."""

    clip_low: float = width(0.05, "nats, of tokens without a gain; DPPO 0.05")
    clip_high: float = width(0.05, "nats, of tokens with a gain; DPPO 0.05")

    def distance(self, new_NT: torch.Tensor, old_NT: torch.Tensor) -> torch.Tensor:
        """See `binary_kl`."""
        return binary_kl(new_NT, old_NT)
