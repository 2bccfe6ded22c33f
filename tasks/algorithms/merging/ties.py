"""TIES: trim, elect a sign per entry, average what agrees (arXiv 2306.01708).

Differs: the paper trims over the whole task vector; mergekit trims per tensor. Both are methods.
"""

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from tasks.algorithms.merging.protocol import MergeMethod, TrimScope
from tasks.algorithms.merging.signs import elected_mean


class Ties(MergeMethod):
    """TIES with a trim of every tensor (mergekit's ties)."""

    trim_over: ClassVar[TrimScope] = TrimScope.TENSOR

    density: float = Field(
        default=0.8, gt=0.0, le=1.0, description="share of the entries that a trim keeps; paper 0.2"
    )

    @property
    def kept_share(self) -> float:
        """As the settings say."""
        return self.density

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Average what agrees with the elected sign."""
        return elected_mean(vectors_M, weights_M)


class ModelTies(Ties):
    """TIES with one trim over the whole model, as in the paper."""

    trim_over: ClassVar[TrimScope] = TrimScope.MODEL
