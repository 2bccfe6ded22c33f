"""Importance weight of a token whose probability differs between trainer and rollout engine.

Source: truncated importance sampling as in the field (token level, cap about 2);
IcePop of Ring-1T (band [0.5, 5]). R3 removes most of the gap at its source, these weigh
what is left. Weights are constants: multiply them into the advantages, so that groups
and ranges of the loss stay what pi_old made them.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import Correction

ICEPOP_LOW = 0.5
"""Lower end of the band (Ring-1T)."""
MAX_LOG_RATIO = 10.0
"""Log-ratios are cut here before exp: far above any cap."""


def correction_weights(
    train_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    correction: Correction,
    cap: float,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Weigh every token by p_train / p_rollout. Returns weights [N, T] and their shares.

    Args:
        train_NT: the trainer's old log-probabilities, before any update of the step.
        rollout_NT: the rollout engine's.
        mask_NT: response tokens; outside, and everywhere when OFF, the weight is 1.
        cap: TIS cuts larger ratios to it; IcePop drops tokens beyond it.

    Returns:
        The metrics `correction/truncated_share` (TIS) and `correction/masked_share`
        (IcePop); 0 without tokens.
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
