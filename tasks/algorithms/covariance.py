"""Entropy control by covariance: the few tokens that lower the entropy most train less.

Source: arXiv 2505.22617. A policy-gradient step changes the entropy by about minus the covariance
of log-probability and advantage, and few tokens make most of it. Clip-Cov draws a share of the
tokens from those within two bounds and takes their gradient; KL-Cov keeps the share with the
largest near the policy before the step, by a penalty of |log ratio|.
Differs: covariances are those before the step and over all of its tokens, where verl takes the
policy in training and a micro-batch: so a step is the same however it is split. A token that the
loss clips later may have been drawn.
Letters: N sequences, T tokens.
"""

import torch

CLIP_BAND = 1.0, 5.0
"""Covariances that Clip-Cov draws from, both ends outside: the authors'."""
KL_WEIGHT = 1.0
"""Of KL-Cov's penalty: the authors'."""


def covariances(
    logprobs_NT: torch.Tensor, advantages_NT: torch.Tensor, mask_NT: torch.Tensor
) -> torch.Tensor:
    """Every token's part of the covariance [N, T], 0 outside of the mask and without tokens.

    Their mean over the mask is the covariance of log-probability and advantage, in nats.
    """
    parts = [(values - values[mask_NT].mean()) for values in (logprobs_NT, advantages_NT)]
    return (parts[0] * parts[1]).masked_fill(~mask_NT, 0.0)


def drawn_in_band(
    covariance_NT: torch.Tensor, mask_NT: torch.Tensor, share: float, seed: int
) -> torch.Tensor:
    """Mark Clip-Cov's tokens [N, T]: `share` of the mask, at least one; fewer if the band has."""
    low, high = CLIP_BAND
    places = (mask_NT & (covariance_NT > low) & (covariance_NT < high)).nonzero()
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))
    picks = places[order[: _count(mask_NT, share)]]
    drawn_NT = torch.zeros_like(mask_NT)
    drawn_NT[picks[:, 0], picks[:, 1]] = True
    return drawn_NT


def largest(covariance_NT: torch.Tensor, mask_NT: torch.Tensor, share: float) -> torch.Tensor:
    """Mark KL-Cov's tokens [N, T]: the largest `share` of the mask, and what ties with it."""
    values = covariance_NT[mask_NT]
    if not len(values):
        return torch.zeros_like(mask_NT)
    least = values.topk(_count(mask_NT, share)).values[-1]
    return mask_NT & (covariance_NT >= least)


def _count(mask_NT: torch.Tensor, share: float) -> int:
    return max(1, int(share * int(mask_NT.sum())))
