"""Weights and masks where the trainer's probability of a token differs from the rollout engine's.

Sources: truncated importance sampling (TIS; token level, cap about 2); IcePop of Ring-1T and GLM-5
(band [0.5, 5]); masks of whole responses by their geometric mean ratio or by any of their tokens,
as in verl, NeMo-RL, slime and SkyRL; the off-policy sequence mask of DeepSeek-V3.2 (2512.02556).
R3 removes most of the gap at its source; these correct the rest. Weights are constants. They
multiply the advantages, so the groups and clip ranges of the loss remain those of pi_old.
What is masked still counts in every divisor: a mask must not raise the weight of the rest.
Differs: no mask by the product of ratios (TRL's default), which leaves out long responses first.
Letters: N sequences, T tokens.
"""

import torch

from data_schemas.rl_settings import Correction, MismatchSettings

MAX_LOG_RATIO = 10.0
"""Log-ratios are clamped to this before exp; far above any cap."""


def correction_weights(
    train_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    settings: MismatchSettings,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Weight every token by p_train / p_rollout, and responses outside of the bands by 0.

    Args:
        train_NT: the trainer's old log-probabilities, before any update of the step.
        rollout_NT: the rollout engine's.
        mask_NT: response tokens; outside, and everywhere with default settings, the weight is 1.
        settings: TIS clamps larger ratios to `cap`; IcePop drops tokens beyond it or below `floor`.

    Returns:
        Weights [N, T], and the metrics `correction/truncated_share` (TIS),
        `correction/masked_share` (tokens) and `correction/masked_responses`, which are 0 without
        tokens. A response without a token has ratio 1.
    """
    gap_NT = (train_NT - rollout_NT).detach().masked_fill(~mask_NT, 0.0)
    ratio_NT = gap_NT.clamp(max=MAX_LOG_RATIO).exp()
    truncated_NT = masked_NT = torch.zeros_like(mask_NT)
    match settings.correction:
        case Correction.OFF:
            weights_NT = torch.ones_like(ratio_NT)
        case Correction.TIS:
            truncated_NT = ratio_NT > settings.cap
            weights_NT = ratio_NT.clamp(max=settings.cap)
        case Correction.ICEPOP:
            masked_NT = (ratio_NT < settings.floor) | (ratio_NT > settings.cap)
            weights_NT = ratio_NT
    outside_N = torch.zeros(len(mask_NT), dtype=torch.bool)
    if settings.geometric_band is not None:
        low, high = settings.geometric_band
        mean_N = (gap_NT.sum(dim=1) / mask_NT.sum(dim=1).clamp(min=1)).exp()
        outside_N |= (mean_N < low) | (mean_N > high)
    if settings.token_band is not None:
        low, high = settings.token_band
        outside_N |= ((ratio_NT < low) | (ratio_NT > high)).any(dim=1)
    masked_NT = (masked_NT | outside_N[:, None]) & mask_NT
    num_tokens = max(1, int(mask_NT.sum()))
    return weights_NT.masked_fill(masked_NT, 0.0), {
        "correction/truncated_share": int(truncated_NT.sum()) / num_tokens,
        "correction/masked_share": int(masked_NT.sum()) / num_tokens,
        "correction/masked_responses": int(outside_N.sum()) / max(1, len(outside_N)),
    }


def is_stale(
    logprobs_NT: torch.Tensor,
    rollout_NT: torch.Tensor,
    advantages_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    bound: float,
) -> torch.Tensor:
    """Mark responses [N] that the policy has left and should not be pushed away from any further.

    A response is marked if the sum of its advantages is negative and the mean of log(rollout /
    policy) over its tokens exceeds `bound`, nats: one-sided, so that a response whose probability
    rose is never marked. Without tokens, or with advantage 0, it is not.
    """
    gap_NT = (rollout_NT - logprobs_NT.detach()).masked_fill(~mask_NT, 0.0)
    mean_N = gap_NT.sum(dim=1) / mask_NT.sum(dim=1).clamp(min=1)
    return (advantages_NT.masked_fill(~mask_NT, 0.0).sum(dim=1) < 0.0) & (mean_N > bound)
