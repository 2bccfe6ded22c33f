"""From settings to a policy loss: the one place where a loss is chosen."""

import torch

from data_schemas.settings import LossSettings, PolicyLoss, RatioMode
from tasks.algorithms.losses import espo, grpo, gspo
from tasks.algorithms.losses.surrogate import Plan


def plan(
    settings: LossSettings, entropy_NT: torch.Tensor, mask_NT: torch.Tensor, *, vocabulary: int
) -> Plan:
    """Let the chosen loss group, bound and weigh the tokens of a step."""
    match settings.kind:
        case PolicyLoss.ESPO:
            return espo.plan(
                entropy_NT,
                mask_NT,
                vocabulary=vocabulary,
                share=settings.high_entropy_share,
                clip_scale=settings.clip_scale,
                clip_floor=settings.clip_floor,
                drop_low=settings.drop_low,
            )
        case PolicyLoss.GSPO:
            return gspo.plan(mask_NT, clip_low=settings.clip_low, clip_high=settings.clip_high)
        case PolicyLoss.GRPO:
            return grpo.plan(mask_NT, clip_low=settings.clip_low, clip_high=settings.clip_high)


def ratio_mode(settings: LossSettings) -> RatioMode:
    """ESPO's reading of eq. 9; GSPO and GRPO are the gspo_token form by definition."""
    return settings.ratio if settings.kind is PolicyLoss.ESPO else RatioMode.GSPO_TOKEN
