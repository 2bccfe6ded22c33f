"""CISPO: every token keeps its gradient; its importance weight is capped and detached.

Source: MiniMax-M1 (arXiv 2506.13585) eq. 4 and 5: sg[clip(r)] * A * log pi, one mean over
all tokens of the batch. The paper sets no lower bound in effect, so there is none here
and `clip_low` is not used; the cap is 1 + clip_high.
Differs: TRL's `epsilon_high` is the cap itself, not its distance from 1.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import DETACHED, Clipped, batch_mean_weights, token_groups


def plan(mask_NT: torch.Tensor, *, num_sequences: int, num_tokens: int, clip_high: float) -> Plan:
    """Make every token its own group; all tokens of the batch weigh the same.

    Args:
        num_sequences: divisor of the summed objective.
        num_tokens: response tokens of the whole batch, rows without gradient included.
    """
    inside_NT = mask_NT.float()
    return Plan(
        groups_NT=token_groups(mask_NT),
        weights_NT=batch_mean_weights(mask_NT, num_sequences=num_sequences, num_tokens=num_tokens),
        clip_low_NT=inside_NT,  # no lower bound: ratios are at least 0
        clip_high_NT=clip_high * inside_NT,
    )


def _of_step(step: StepTokens, settings: LossSettings) -> Plan:
    return plan(
        step.mask_NT,
        num_sequences=step.totals.num_sequences,
        num_tokens=step.totals.num_tokens,
        clip_high=settings.clip_high,
    )


LOSS = Clipped(_of_step, ratio=lambda _: DETACHED)
