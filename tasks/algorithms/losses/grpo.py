"""GRPO: one ratio per token, mean over the tokens of a sequence, then over sequences.

Source: GRPO as in DeepSeekMath. Compass-Thinker's form is this one without KL and with a
wider upper bound (clip-higher): `clip_high` above `clip_low`, `auxiliary.kl` 0.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, sequence_mean_weights, token_groups


def plan(mask_NT: torch.Tensor, *, clip_low: float, clip_high: float) -> Plan:
    """Make every token its own group; tokens of a sequence weigh the same."""
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=token_groups(mask_NT),
        weights_NT=sequence_mean_weights(mask_NT),
        clip_low_NT=clip_low * inside_NT,
        clip_high_NT=clip_high * inside_NT,
    )


def _of_step(step: StepTokens, settings: LossSettings) -> Plan:
    return plan(step.mask_NT, clip_low=settings.clip_low, clip_high=settings.clip_high)


LOSS = Clipped(_of_step)
