"""GSPO: one ratio per sequence (arXiv 2507.18071, the GSPO-token form).

Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, clip_plan, sequence_mean_weights


def plan(step: StepTokens, settings: LossSettings) -> Plan:
    """Put all tokens of a sequence into one group; tokens weigh the same."""
    mask_NT = step.mask_NT
    groups_NT = torch.zeros_like(mask_NT, dtype=torch.int64)
    return clip_plan(mask_NT, groups_NT, sequence_mean_weights(mask_NT), settings)


LOSS = Clipped(plan)
