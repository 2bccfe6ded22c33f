"""DAPO: token ratios, one mean over all tokens of the batch, clip-higher.

Source: arXiv 2503.14476 eq. 8. Dynamic sampling and the over-long penalty, its other
parts, live in tasks/rl/collector.py and tasks/algorithms/penalties.py.
Differs: the mean is over the tokens of the step, as in DAPO's code; eq. 8 has the mean over those
of one prompt's group, and then over prompts.
Letters: N sequences, T tokens.
"""

from tasks.algorithms.losses.protocol import StepTokens, TokenPlan
from tasks.algorithms.losses.surrogate import (
    ClippedLoss,
    batch_mean_weights,
    clip_plan,
    token_groups,
    width,
)


class DAPO(ClippedLoss):
    """Decoupled clip and dynamic sampling policy optimisation."""

    clip_low: float = width(0.2, "below; DAPO 0.2")
    clip_high: float = width(0.28, "above; DAPO 0.28")

    def plan(self, step: StepTokens) -> TokenPlan:
        """Make every token its own group; all tokens of the batch weigh the same."""
        mask_NT = step.mask_NT
        return clip_plan(mask_NT, token_groups(mask_NT), batch_mean_weights(step), self.clip_range)
