"""Covariance of log-probability and advantage, by token: what Clip-Cov and KL-Cov choose by.

Source: arXiv 2505.22617. A policy-gradient step changes the entropy by about minus this covariance,
and few tokens make most of it.
Differs: covariances are those before the step and over all of its tokens, where verl takes the
policy in training and a micro-batch: so a step is the same however it is split. A token that the
loss clips later may have been chosen.
Letters: N sequences, T tokens.
"""

import torch


def covariances(
    logprobs_NT: torch.Tensor, advantages_NT: torch.Tensor, mask_NT: torch.Tensor
) -> torch.Tensor:
    """Every token's part of the covariance [N, T], 0 outside of the mask and without tokens.

    Their mean over the mask is the covariance of log-probability and advantage, in nats.
    """
    parts = [(values - values[mask_NT].mean()) for values in (logprobs_NT, advantages_NT)]
    return (parts[0] * parts[1]).masked_fill(~mask_NT, 0.0)


def num_chosen(mask_NT: torch.Tensor, share: float) -> int:
    """Return how many tokens are a share of the mask, at least one."""
    return max(1, int(share * int(mask_NT.sum())))
