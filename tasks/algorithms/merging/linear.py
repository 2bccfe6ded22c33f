"""Merges that are linear in the task vectors (parent minus base).

The weighted mean is the model soup (arXiv 2203.05482): with scale 1 it is the mean of the parents.
The weighted sum is task arithmetic (arXiv 2212.04089). Letters: M parents, always the first axis.

Differs: mergekit averages the parents themselves; the mean of their task vectors is the same up to
rounding, and a scale moves the result along the line from the base.
"""

import torch
from torch import Tensor

from tasks.algorithms.merging.protocol import MergeMethod


def weighted_sum(vectors_M: Tensor, weights_M: Tensor) -> Tensor:
    """Add the weighted task vectors."""
    return torch.tensordot(weights_M, vectors_M, dims=1)


def weighted_mean(vectors_M: Tensor, weights_M: Tensor) -> Tensor:
    """Average the task vectors; weights are positive."""
    return weighted_sum(vectors_M, weights_M) / weights_M.sum()


class LinearMerge(MergeMethod):
    """Mean of the parents."""

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Average the task vectors."""
        return weighted_mean(vectors_M, weights_M)


class TaskArithmetic(MergeMethod):
    """Sum of the task vectors."""

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Add the task vectors."""
        return weighted_sum(vectors_M, weights_M)
