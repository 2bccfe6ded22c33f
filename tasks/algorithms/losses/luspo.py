"""LUSPO: GSPO's sequence ratio, every token of the batch with the same weight.

Source: arXiv 2602.05261. GSPO divides the gradient of a token by the length of its sequence, which
favours short answers where all are right and long ones where all are wrong; here it does not.
Differs: the paper's sum over tokens grows with the responses, and so does the step; it is divided
by the mean length of the step.
Letters: N sequences, T tokens.
"""

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    batch_mean_weights,
    clip_plan,
    sequence_groups,
    width,
)


class LUSPO(ClippedLoss):
    """Length-unbiased sequence policy optimisation."""

    clip_low: float = width(2e-3, "below; LUSPO 2e-3")
    clip_high: float = width(2.5e-3, "above; LUSPO 2.5e-3")

    def plan(self, step: StepTokens) -> TokenPlan:
        """GSPO's groups with DAPO's weights."""
        weights_NT = batch_mean_weights(step)
        groups_NT = sequence_groups(step.mask_NT)
        return clip_plan(step.mask_NT, groups_NT, weights_NT, self.clip_range)
