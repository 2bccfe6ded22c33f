"""DARE: entries are dropped at random before the task vectors are merged (arXiv 2311.03099).

Differs: `normalize` of mergekit's dare_ties is off by default, which adds the entries that agree;
the paper averages them, as TIES does.
"""

from pydantic import Field
from torch import Tensor

from tasks.algorithms.merging.drops import drop
from tasks.algorithms.merging.linear import weighted_sum
from tasks.algorithms.merging.protocol import MergeMethod
from tasks.algorithms.merging.signs import elected_mean


class DareLinear(MergeMethod):
    """Sum of the task vectors after the drop."""

    density: float = Field(
        default=0.8, gt=0.0, le=1.0, description="share of the entries that the drop keeps"
    )

    def sparsify(self, vector: Tensor, key: int, start: int) -> Tensor:
        """Drop entries and rescale the rest."""
        return drop(vector, key, self.density, start)

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Add the task vectors."""
        return weighted_sum(vectors_M, weights_M)


class DareTies(DareLinear):
    """TIES with the drop instead of the trim."""

    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Average what agrees with the elected sign."""
        return elected_mean(vectors_M, weights_M)
