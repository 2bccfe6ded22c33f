"""GSPO: one ratio per sequence (arXiv 2507.18071, the GSPO-token form).

Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, sequence_mean_weights


def plan(mask_NT: torch.Tensor, *, clip_low: float, clip_high: float) -> Plan:
    """Put all tokens of a sequence into one group; tokens weigh the same."""
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=torch.zeros_like(mask_NT, dtype=torch.int64),
        weights_NT=sequence_mean_weights(mask_NT),
        clip_low_NT=clip_low * inside_NT,
        clip_high_NT=clip_high * inside_NT,
    )


def _of_step(step: StepTokens, settings: LossSettings) -> Plan:
    return plan(step.mask_NT, clip_low=settings.clip_low, clip_high=settings.clip_high)


LOSS = Clipped(_of_step)
