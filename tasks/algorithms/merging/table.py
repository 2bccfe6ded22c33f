"""Merge one tensor of several models with the method of the settings.

Every method makes one movement from the base, which `scale` multiplies: scale 0 is the base. The
task vectors come in already sparsified (ties.trim, dare.drop), because a trim over the whole model
has to know all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from data_schemas.settings import MergeMethod
from tasks.algorithms.merging import linear, ties
from tasks.algorithms.merging.slerp import slerp

MOVES: dict[MergeMethod, Callable[[Tensor, Tensor], Tensor]] = {
    MergeMethod.TIES: ties.elected_mean,
    MergeMethod.TIES_MODEL: ties.elected_mean,
    MergeMethod.LINEAR: linear.weighted_mean,
    MergeMethod.TASK_ARITHMETIC: linear.weighted_sum,
    MergeMethod.DARE_TIES: ties.elected_mean,
    MergeMethod.DARE_LINEAR: linear.weighted_sum,
}
"""(task vectors, weights) -> movement from the base. SLERP needs the parents themselves."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged tensor and how much the parents disagreed about it."""

    tensor: Tensor
    num_kept: int
    """Entries of the sparsified task vectors that are not 0, of all parents together."""
    num_conflicts: int
    """Entries in which two sparsified task vectors have opposite signs."""


def combine(
    method: MergeMethod, base: Tensor, vectors_M: Tensor, weights_M: Tensor, scale: float
) -> Merged:
    """Move the base by `scale` times what the method makes of the task vectors.

    Args:
        vectors_M: parent minus base, sparsified if the method does so; fp32.
        weights_M: positive.
        scale: lambda.
    """
    if method is MergeMethod.SLERP:
        moved = slerp(base + vectors_M, weights_M) - base
    else:
        moved = MOVES[method](vectors_M, weights_M)
    # numpy compares and counts in a third of the time that torch takes.
    kept = int(np.count_nonzero(vectors_M.numpy() != 0.0))
    largest, smallest = vectors_M.amax(dim=0).numpy(), vectors_M.amin(dim=0).numpy()
    conflicts = int(np.count_nonzero((largest > 0.0) & (smallest < 0.0)))
    return Merged(base + scale * moved, kept, conflicts)
