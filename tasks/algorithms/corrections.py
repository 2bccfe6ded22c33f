"""Importance weight of a token whose probability differs between trainer and rollout engine.

Source: truncated importance sampling (TIS; token level, cap about 2), and IcePop of Ring-1T
(band [0.5, 5]). R3 removes most of the gap at its source; these weights correct the rest.
Weights are constants. They multiply the advantages, so the groups and clip ranges of the loss
remain those computed from pi_old.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import Correction

ICEPOP_LOW = 0.5
"""Lower end of the band (Ring-1T)."""
MAX_LOG_RATIO = 10.0
"""Log-ratios are clamped to this before exp; far above any cap."""


def correction_weights(
    train_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    correction: Correction,
    cap: float,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Weight every token by p_train / p_rollout.

    Args:
        train_NT: the trainer's old log-probabilities, before any update of the step.
        rollout_NT: the rollout engine's.
        mask_NT: response tokens; outside, and everywhere when OFF, the weight is 1.
        cap: TIS clamps larger ratios to it; IcePop drops tokens beyond it.

    Returns:
        Weights [N, T], and the metrics `correction/truncated_share` (TIS) and
        `correction/masked_share` (IcePop), which are 0 without tokens.
    """
    gap_NT = (train_NT - rollout_NT).detach().masked_fill(~mask_NT, 0.0)
    ratio_NT = gap_NT.clamp(max=MAX_LOG_RATIO).exp()
    truncated_NT = masked_NT = torch.zeros_like(mask_NT)
    match correction:
        case Correction.OFF:
            weights_NT = torch.ones_like(ratio_NT)
        case Correction.TIS:
            truncated_NT = ratio_NT > cap
            weights_NT = ratio_NT.clamp(max=cap)
        case Correction.ICEPOP:
            masked_NT = (ratio_NT < ICEPOP_LOW) | (ratio_NT > cap)
            weights_NT = ratio_NT.masked_fill(masked_NT, 0.0)
    num_tokens = max(1, int(mask_NT.sum()))
    return weights_NT, {
        "correction/truncated_share": int(truncated_NT.sum()) / num_tokens,
        "correction/masked_share": int(masked_NT.sum()) / num_tokens,
    }
