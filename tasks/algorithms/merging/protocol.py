"""What a merge method is: its settings, what it needs, and how it moves a base to its parents.

Built-in methods are entries of tasks/algorithms/names.py. `merge.method: my_merge.py:Name` names
one of a user's own. Every method makes one movement from the base, which `merge.scale` multiplies:
scale 0 is the base. Letters: M parents, always the first axis.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from torch import Tensor

from data_schemas.machine_settings import Settings


class TrimScope(StrEnum):
    """What one trim is over, before a method sees a task vector."""

    NOTHING = "nothing"
    TENSOR = "tensor"
    MODEL = "model"


class MergeMethod(Settings, ABC):
    """A merge method: its fields, which all have defaults, are the keys beside `merge.method`.

    Contract: pure. A task vector comes in parts of consecutive entries, in fp32, unless the method
    needs whole tensors; the parts of a result are those of the whole.
    """

    trim_over: ClassVar[TrimScope] = TrimScope.NOTHING
    """Only the largest magnitudes of a task vector are left, and the others are 0."""
    needs_whole_tensors: ClassVar[bool] = False
    """The movement of an entry depends on others: memory for whole tensors is used."""

    @property
    def kept_share(self) -> float:
        """Share of the entries that the trim keeps, of a method that has one."""
        return 1.0

    def sparsify(self, vector: Tensor, key: int, start: int) -> Tensor:
        """Zero entries of one parent's task vector; as it is, unless a method says otherwise.

        Args:
            vector: a part of it, behind the trim.
            key: of random numbers; another one for every tensor of every parent.
            start: index of the part's first entry in the whole tensor.
        """
        return vector

    @abstractmethod
    def movement(self, base: Tensor, vectors_M: Tensor, weights_M: Tensor) -> Tensor:
        """Make one movement of the task vectors.

        Args:
            base: a part of a tensor.
            vectors_M: parent minus base, trimmed and sparsified; fp32.
            weights_M: positive.
        """


@dataclass(frozen=True, slots=True)
class MergedTensor:
    """A merged tensor and how much the parents disagreed about it."""

    tensor: Tensor
    num_kept: int
    """Entries of the sparsified task vectors that are not 0, of all parents together."""
    num_conflicts: int
    """Entries in which two sparsified task vectors have opposite signs."""


def combine(
    method: MergeMethod, base: Tensor, vectors_M: Tensor, weights_M: Tensor, scale: float
) -> MergedTensor:
    """Move the base by `scale` times what the method makes of the task vectors.

    Args:
        method: with its settings.
        base: a tensor, or a part of one; fp32.
        vectors_M: parent minus base, trimmed and sparsified; fp32.
        weights_M: positive.
        scale: lambda.
    """
    moved = method.movement(base, vectors_M, weights_M)
    # numpy compares and counts in a third of the time that torch takes.
    num_nonzero = int(np.count_nonzero(vectors_M.numpy() != 0.0))
    largest, smallest = vectors_M.amax(dim=0).numpy(), vectors_M.amin(dim=0).numpy()
    conflicts = int(np.count_nonzero((largest > 0.0) & (smallest < 0.0)))
    return MergedTensor(base + scale * moved, num_nonzero, conflicts)
