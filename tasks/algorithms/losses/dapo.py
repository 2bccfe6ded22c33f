"""DAPO: token ratios, one mean over all tokens of the batch, clip-higher.

Source: arXiv 2503.14476 eq. 8. Dynamic sampling and the over-long penalty, its other
parts, live in tasks/rl/collector.py and tasks/algorithms/penalties.py.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, batch_mean_weights, token_groups


def plan(
    mask_NT: torch.Tensor,
    *,
    num_sequences: int,
    num_tokens: int,
    clip_low: float,
    clip_high: float,
) -> Plan:
    """Make every token its own group; all tokens of the batch weigh the same.

    Args:
        num_sequences: divisor of the summed objective.
        num_tokens: response tokens of the whole batch, rows without gradient included.
    """
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=token_groups(mask_NT),
        weights_NT=batch_mean_weights(mask_NT, num_sequences=num_sequences, num_tokens=num_tokens),
        clip_low_NT=clip_low * inside_NT,
        clip_high_NT=clip_high * inside_NT,
    )


def _of_step(step: StepTokens, settings: LossSettings) -> Plan:
    return plan(
        step.mask_NT,
        num_sequences=step.totals.num_sequences,
        num_tokens=step.totals.num_tokens,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
    )


LOSS = Clipped(_of_step)
