"""LUSPO: GSPO's sequence ratio, every token of the batch with the same weight.

Source: arXiv 2602.05261. GSPO divides the gradient of a token by the length of its sequence, which
favours short answers where all are right and long ones where all are wrong; here it does not.
Differs: the paper's sum over tokens grows with the responses, and so does the step; it is divided
by the mean length of the step.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import gspo
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, batch_mean_weights


def plan(
    mask_NT: torch.Tensor,
    *,
    num_sequences: int,
    num_tokens: int,
    clip_low: float,
    clip_high: float,
) -> Plan:
    """Put all tokens of a sequence into one group; all tokens of the batch weigh the same.

    Args:
        num_sequences: divisor of the summed objective.
        num_tokens: response tokens of the whole batch, rows without gradient included.
        clip_low: the paper's is 2e-3.
        clip_high: the paper's is 2.5e-3.
    """
    of_sequences = gspo.plan(mask_NT, clip_low=clip_low, clip_high=clip_high)
    return Plan(
        groups_NT=of_sequences.groups_NT,
        weights_NT=batch_mean_weights(mask_NT, num_sequences=num_sequences, num_tokens=num_tokens),
        clip_low_NT=of_sequences.clip_low_NT,
        clip_high_NT=of_sequences.clip_high_NT,
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
