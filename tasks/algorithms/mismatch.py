"""Difference between the log-probabilities of the trainer and the rollout engine.

Source: R3 (arXiv 2510.11370) section on train-inference mismatch.
Convention: D = log p_train - log p_rollout of the sampled tokens.
"""

import math

import torch

EXTREME_RATIO = 2.0


def mismatch_metrics(
    train_NT: torch.Tensor, rollout_NT: torch.Tensor, mask_NT: torch.Tensor
) -> dict[str, float]:
    """Mean |D|, k3 KL, share beyond 2x, and effective sample size share of exp(D).

    All are 0 (effective share 1) when the mask selects no token.
    """
    if not mask_NT.any():
        return {
            "mismatch/mean_abs_logprob": 0.0,
            "mismatch/k3": 0.0,
            "mismatch/extreme_share": 0.0,
            "mismatch/effective_share": 1.0,
        }
    gap = (train_NT[mask_NT] - rollout_NT[mask_NT]).double()
    ratio = gap.exp()
    return {
        "mismatch/mean_abs_logprob": float(gap.abs().mean()),
        "mismatch/k3": float((torch.expm1(gap) - gap).mean()),
        "mismatch/extreme_share": float((gap.abs() > math.log(EXTREME_RATIO)).double().mean()),
        "mismatch/effective_share": float(
            ratio.sum().square() / (len(ratio) * ratio.square().sum())
        ),
    }
