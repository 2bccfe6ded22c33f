"""GRPO: one ratio per token, mean over the tokens of a sequence, then over sequences.

Source: GRPO as in DeepSeekMath. Compass-Thinker's form is this one without KL and with a
wider upper bound (clip-higher): `clip_high` above `clip_low`, no term `kl`.
Letters: N sequences, T tokens.
"""

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    clip_plan,
    sequence_mean_weights,
    token_groups,
    width,
)


class GRPO(ClippedLoss):
    """Group relative policy optimisation."""

    clip_low: float = width(0.2, "below; GRPO 0.2")
    clip_high: float = width(0.2, "above; GRPO 0.2, clip-higher 0.28")

    def plan(self, step: StepTokens) -> TokenPlan:
        """Make every token its own group; tokens of a sequence weigh the same."""
        mask_NT = step.mask_NT
        weights_NT = sequence_mean_weights(mask_NT)
        return clip_plan(mask_NT, token_groups(mask_NT), weights_NT, self.clip_range)
