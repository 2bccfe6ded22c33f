"""RL-ZVP: groups whose rewards are all equal teach by the entropy of their tokens.

Source: RL-ZVP (arXiv 2509.21880), whose best alpha is 0.10; CompassMax.
Letters: N sequences, T tokens.
"""

from typing import ClassVar

import torch
from pydantic import Field

from tasks.algorithms.terms.protocol import StepEffect, StepSignal, Term


class RLZVP(Term):
    """Give the tokens of zero-variance groups advantages of their own."""

    needs_entropy: ClassVar[bool] = True
    trains_zero_variance: ClassVar[bool] = True

    alpha: float = Field(default=0.1, gt=0.0, description="advantage per nat; 2509.21880: 0.10")

    def weigh(self, step: StepSignal) -> StepEffect:
        """Add the advantages; without a sequence there is nothing to do."""
        if not len(step.correct_N):
            return StepEffect()
        zvp_NT = rl_zvp_advantages(
            step.entropy_NT, step.response_NT, step.correct_N, alpha=self.alpha
        )
        own_NT = zvp_NT.where(step.zero_variance_N[:, None], 0.0)
        return StepEffect(advantages_NT=step.advantages_NT + own_NT)


def rl_zvp_advantages(
    entropy_NT: torch.Tensor, mask_NT: torch.Tensor, correct_N: torch.Tensor, *, alpha: float
) -> torch.Tensor:
    """Token-level advantages for sequences of zero-variance groups.

    All correct: +alpha * H. All wrong: -alpha * (max H of the response - H), so its most
    uncertain token is not penalised and its most confident tokens are penalised most.

    Args:
        entropy_NT: detached full-vocabulary entropy in nats at the sampling temperature.
        mask_NT: True on response tokens; the maximum is taken over these only.
        correct_N: True if the zero-variance group solved the problem, False if it failed.

    Returns:
        [N, T], zero outside the mask; zeros for a sequence without tokens.
    """
    inside_NT = entropy_NT.masked_fill(~mask_NT, 0.0)
    highest_N1 = inside_NT.amax(dim=1, keepdim=True)
    signed_NT = torch.where(correct_N[:, None], inside_NT, inside_NT - highest_N1)
    return (alpha * signed_NT).masked_fill(~mask_NT, 0.0)
