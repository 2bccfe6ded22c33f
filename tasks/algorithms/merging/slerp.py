"""SLERP: interpolate two tensors along the arc between them, each tensor as one flat vector.

With an angle of 0 or pi the arc is not defined, and near it the formula divides by a small number:
there the interpolation is linear (mergekit's threshold). Parents that were fine-tuned from one base
nearly always lie within it, so SLERP of them is the linear mean.

Differs: mergekit gives a tensor of zeros a right angle to any other; here, it has no angle and is
interpolated linearly.
"""

import math
from typing import ClassVar

import torch
from torch import Tensor

from tasks.algorithms.merging.protocol import MergeMethod
from tasks.errors import SettingsError

LINEAR_ABOVE = 0.9995
"""Cosine from which the interpolation is linear; mergekit's DOT_THRESHOLD."""


def cosine(first: Tensor, second: Tensor) -> float:
    """Cosine of the angle between two tensors; 1 if one of them is zero.

    It follows from the lengths of both and of their difference, which is exact where it matters:
    for tensors that are nearly the same.
    """
    one, two, apart = (
        float(torch.linalg.vector_norm(tensor, dtype=torch.float64))
        for tensor in (first, second, first - second)
    )
    if one == 0.0 or two == 0.0:
        return 1.0
    return max(-1.0, min(1.0, (one * one + two * two - apart * apart) / (2.0 * one * two)))


def coefficients(first: Tensor, second: Tensor, share: float) -> tuple[float, float]:
    """Return the factors of both tensors at `share` of the way from the first to the second."""
    value = cosine(first, second)
    if abs(value) > LINEAR_ABOVE:
        return 1.0 - share, share
    angle = math.acos(value)
    return (
        math.sin((1.0 - share) * angle) / math.sin(angle),
        math.sin(share * angle) / math.sin(angle),
    )


def slerp(parents_M: Tensor, weights_M: Tensor) -> Tensor:
    """Interpolate two parents; the second one's share is its share of the weights.

    Raises:
        SettingsError: there are not two parents.
    """
    if len(parents_M) != 2:
        raise SettingsError(f"slerp merges two models, got {len(parents_M)}; set merge.method")
    first, second = coefficients(parents_M[0], parents_M[1], float(weights_M[1] / weights_M.sum()))
    return first * parents_M[0] + second * parents_M[1]


class Slerp(MergeMethod):
    """Along the arc between the parents, tensor by tensor."""

    needs_whole_tensors: ClassVar[bool] = True

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Move from the base to a place between the parents themselves."""
        return slerp(base + vectors_M, weights_M) - base
