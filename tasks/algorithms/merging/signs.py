"""TIES's election: a sign per entry, and the mean of the entries that have it (arXiv 2306.01708).

Letters: M parents, always the first axis.
"""

import torch
from torch import Tensor


def elect_signs(trimmed_M: Tensor, weights_M: Tensor) -> Tensor:
    """Elect +1 or -1 per entry by the weighted sum of the parents; a tie elects +1."""
    mass = torch.tensordot(weights_M, trimmed_M, dims=1)
    return mass.ge_(0.0).mul_(2.0).sub_(1.0)


def disjoint_mean(trimmed_M: Tensor, weights_M: Tensor, signs: Tensor) -> Tensor:
    """Average the non-zero entries that have the elected sign; 0 where there is none."""
    agrees_M = (trimmed_M * signs).gt_(0.0)
    total = torch.tensordot(weights_M, trimmed_M * agrees_M, dims=1)
    divisor = torch.tensordot(weights_M, agrees_M, dims=1)
    # Where none agrees, 0 is divided by 1.
    return total.div_(divisor.add_(divisor.clone().eq_(0.0)))


def elected_mean(trimmed_M: Tensor, weights_M: Tensor) -> Tensor:
    """Average the entries whose sign the parents elect."""
    return disjoint_mean(trimmed_M, weights_M, elect_signs(trimmed_M, weights_M))
