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

    They are of the tokens whose D is finite; the others, whose logits overflowed in one of the
    engines, are counted. All are 0 (effective share 1) without a finite token.
    """
    gap = (train_NT[mask_NT] - rollout_NT[mask_NT]).double()
    finite = gap[gap.isfinite()]
    overflow = {"mismatch/overflow_tokens": float(len(gap) - len(finite))}
    if not len(finite):
        return overflow | {
            "mismatch/mean_abs_logprob": 0.0,
            "mismatch/k3": 0.0,
            "mismatch/extreme_share": 0.0,
            "mismatch/effective_share": 1.0,
        }
    gap = finite
    ratio = gap.exp()
    return overflow | {
        "mismatch/mean_abs_logprob": float(gap.abs().mean()),
        "mismatch/k3": float((torch.expm1(gap) - gap).mean()),
        "mismatch/extreme_share": float((gap.abs() > math.log(EXTREME_RATIO)).double().mean()),
        "mismatch/effective_share": float(
            ratio.sum().square() / (len(ratio) * ratio.square().sum())
        ),
    }
