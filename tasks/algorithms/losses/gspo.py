"""GSPO: one ratio per sequence (arXiv 2507.18071, the GSPO-token form).

Letters: N sequences, T tokens.
"""

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    clip_plan,
    sequence_groups,
    sequence_mean_weights,
    width,
)


class GSPO(ClippedLoss):
    """Group sequence policy optimisation."""

    clip_low: float = width(3e-4, "below; GSPO 3e-4")
    clip_high: float = width(4e-4, "above; GSPO 4e-4")

    def plan(self, step: StepTokens) -> TokenPlan:
        """Put all tokens of a sequence into one group; tokens weigh the same."""
        weights_NT = sequence_mean_weights(step.mask_NT)
        groups_NT = sequence_groups(step.mask_NT)
        return clip_plan(step.mask_NT, groups_NT, weights_NT, self.clip_range)
