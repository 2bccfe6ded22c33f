"""KL penalty per token against a reference policy.

Source: Schulman's k3, exp(d) - 1 - d with d = log ref - log pi; in the objective of GRPO
and of Ring-lite eq. 2, where it is weighted like the token's surrogate.
Differs: k3 is multiplied by the importance ratio pi / pi_old. Its mean over samples of
pi_old is then KL(pi || ref), with the gradient of KL(pi || ref); without the ratio the
gradient is that of KL(ref || pi). On-policy both have the same value.
Letters: N sequences, T tokens.
"""

import torch

from tasks.algorithms.losses.surrogate import MAX_LOG_RATIO


def k3(logprobs_NT: torch.Tensor, reference_NT: torch.Tensor) -> torch.Tensor:
    """Estimate KL(pi || ref) at every sampled token; never negative."""
    gap_NT = (reference_NT - logprobs_NT).clamp(max=MAX_LOG_RATIO)
    return torch.expm1(gap_NT) - gap_NT


def kl_penalty(
    logprobs_NT: torch.Tensor,
    old_logprobs_NT: torch.Tensor,
    reference_NT: torch.Tensor,
    weights_NT: torch.Tensor,
) -> torch.Tensor:
    """Weighted KL of every sequence [N], to be added to its loss times beta.

    Args:
        logprobs_NT: under the policy in training, with gradient.
        old_logprobs_NT: under the policy that generated the tokens.
        reference_NT: under the reference, at the same temperature.
        weights_NT: the plan's token weights; tokens of weight 0 are ignored.
    """
    outside_NT = weights_NT <= 0
    ratio_NT = (logprobs_NT - old_logprobs_NT).masked_fill(outside_NT, 0.0)
    ratio_NT = ratio_NT.clamp(max=MAX_LOG_RATIO).exp()
    drift_NT = k3(logprobs_NT, reference_NT).masked_fill(outside_NT, 0.0)
    return (weights_NT * ratio_NT * drift_NT).sum(dim=1)
