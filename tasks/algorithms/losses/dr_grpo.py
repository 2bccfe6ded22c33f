"""Dr. GRPO: token ratios, a sum over tokens divided by a constant.

Source: arXiv 2503.20783. A mean per sequence makes long wrong answers cheap, so every
token weighs 1 / (longest response that may be sampled), whatever the response's length.
The other half of the method, advantages that are not divided by the standard deviation,
is `scale_by_std=False` of tasks/algorithms/advantages.py.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, token_groups


def plan(mask_NT: torch.Tensor, *, max_new_tokens: int, clip_low: float, clip_high: float) -> Plan:
    """Make every token its own group, weighing 1 / max_new_tokens."""
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=token_groups(mask_NT),
        weights_NT=inside_NT / max(1, max_new_tokens),
        clip_low_NT=clip_low * inside_NT,
        clip_high_NT=clip_high * inside_NT,
    )


def _of_step(step: StepTokens, settings: LossSettings) -> Plan:
    return plan(
        step.mask_NT,
        max_new_tokens=step.totals.max_new_tokens,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
    )


LOSS = Clipped(_of_step)
