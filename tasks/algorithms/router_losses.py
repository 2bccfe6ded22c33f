"""Auxiliary losses that keep routers balanced and their logits small.

Source: Ring-lite eq. 6: B = sum_i P_i F_i over experts, Z = mean (logsumexp of logits)^2.
Differs: F is relative to uniform load, so that a balanced router has B = 1. Both are means
over MoE layers, and over all real tokens of an update, prompts included. Logits are the
router's own, never those of replayed choices (R3, E.3).
Letters: M packed tokens, E experts, K experts per token, L MoE layers.
"""

import torch

from data_schemas.routing import Routing
from tasks.algorithms.routing import SMALLEST_SUM, selection


def expert_loads(
    logits_ME: torch.Tensor,
    weights_M: torch.Tensor,
    routing: Routing,
    bias_E: torch.Tensor | None = None,
) -> torch.Tensor:
    """How often each expert is in a token's native choice, as weighted counts [E]."""
    chosen_MK = selection(logits_ME, routing, bias_E)
    counts_E = logits_ME.new_zeros(logits_ME.shape[1], dtype=torch.float32)
    copies = weights_M.float().repeat_interleave(routing.top_k)
    return counts_E.index_add_(0, chosen_MK.flatten(), copies)


def balance_loss(
    logits_ME: torch.Tensor,
    weights_M: torch.Tensor,
    counts_E: torch.Tensor,
    num_tokens: float,
    routing: Routing,
) -> torch.Tensor:
    """Compute B of one layer; micro-batches add up if `counts_E` covers the whole update.

    Args:
        weights_M: number of tokens of the batch that a row represents.
        counts_E: `expert_loads` of the whole update; a constant.
        num_tokens: tokens of the whole update.
    """
    if routing.score == "sigmoid":  # as megatron-core's and DeepSeek-V3's sequence-wise loss
        scores_ME = torch.sigmoid(logits_ME.float())
        probabilities_ME = scores_ME / (scores_ME.sum(dim=1, keepdim=True) + SMALLEST_SUM)
    else:
        probabilities_ME = torch.softmax(logits_ME.float(), dim=1)
    share_E = (probabilities_ME * weights_M[:, None]).sum(dim=0) / num_tokens
    relative_E = counts_E * (len(counts_E) / counts_E.sum().clamp(min=1.0))
    return (share_E * relative_E).sum()


def z_loss(logits_ME: torch.Tensor, weights_M: torch.Tensor, num_tokens: float) -> torch.Tensor:
    """Compute Z of one layer; micro-batches of an update add up."""
    return (logits_ME.float().logsumexp(dim=1).square() * weights_M).sum() / num_tokens
