"""Dr. GRPO: token ratios, a sum over tokens divided by a constant.

Source: arXiv 2503.20783. A mean per sequence makes long wrong answers cheap, so every
token weighs 1 / (longest response that may be sampled), whatever the response's length.
The other half of the method, advantages that are not divided by the standard deviation,
is `centred` (tasks/algorithms/advantages/centred.py).
Letters: N sequences, T tokens.
"""

from typing import ClassVar

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    clip_plan,
    token_groups,
    width,
)


class DrGRPO(ClippedLoss):
    """GRPO done right: no division by lengths or deviations."""

    advantage: ClassVar[str] = "centred"

    clip_low: float = width(0.2, "below; GRPO 0.2")
    clip_high: float = width(0.2, "above; GRPO 0.2")

    def plan(self, step: StepTokens) -> TokenPlan:
        """Make every token its own group, weighing 1 / max_new_tokens."""
        weights_NT = step.mask_NT.float() / max(1, step.totals.max_new_tokens)
        groups_NT = token_groups(step.mask_NT)
        return clip_plan(step.mask_NT, groups_NT, weights_NT, self.clip_range)
