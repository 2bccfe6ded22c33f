"""The trim of a tensor, and that of a whole model, from weights that are read in parts."""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from tasks.algorithms.merging import trims
from tasks.models.weights import Weights
from tasks.training.merge.threads import in_order

PART = 1 << 17
"""Entries that a core works on at a time: 512 KiB in fp32, which stay in its cache."""
SAMPLE = 1 << 17
"""Entries that a threshold is guessed from: 2 % of a tensor are then near enough to the guess."""


def tensor_trim(parent: Tensor, base: Tensor, num_kept: int) -> trims.Threshold:
    """Find the trim that keeps the `num_kept` largest magnitudes of a tensor's task vector.

    Exact in any case: where the guess from a sample fails, the whole vector is made in fp32.
    """
    # An odd step does not stay in the same columns of a matrix.
    step = base.numel() // SAMPLE | 1
    sample = parent.flatten()[::step].float() - base.flatten()[::step].float()
    guess = trims.bracket(sample, num_kept / base.numel())
    threshold = trims.threshold_within(_moved(parent, base), num_kept, guess)
    return threshold or trims.tensor_threshold(parent.float() - base.float(), num_kept)


def model_trim(
    parent: Weights, base: Weights, names: Sequence[str], density: float
) -> dict[str, trims.Threshold]:
    """Trim the task vector of a whole model and share the trim out among its tensors.

    The files are read three times, one tensor per core at a time.

    Args:
        parent: the fine-tuned model.
        base: the model before.
        names: tensors that the trim is over; of entries equal to the threshold, those of earlier
            tensors are kept.
        density: share of the entries that is kept.

    Raises:
        SettingsError: the density keeps nothing, or there are no tensors.
    """

    def histogram(upper: int | None) -> Tensor:
        def count(name: str) -> Tensor:
            vectors = _moved(parent.read(name), base.read(name))
            return _sum(trims.magnitude_histogram(vector, upper) for vector in vectors)

        return _sum(in_order(count, names))

    def count_equal(name: str) -> int:
        vectors = _moved(parent.read(name), base.read(name))
        return sum(trims.count_equal(vector, threshold.magnitude) for vector in vectors)

    num_entries = sum(math.prod(base.shape(name)) for name in names)
    num_kept = trims.num_kept(density, num_entries, name=str(parent.folder))
    threshold = trims.histogram_threshold(histogram, num_kept)
    remaining, by_name = threshold.num_equal, {}
    for name, equal in zip(names, in_order(count_equal, names), strict=True):
        by_name[name] = trims.Threshold(threshold.magnitude, min(remaining, equal))
        remaining -= by_name[name].num_equal
    return by_name


def part_of(tensor: Tensor, start: int, size: int) -> Tensor:
    """Return up to `size` entries of a tensor from number `start` on, in fp32."""
    return tensor.flatten()[start : start + size].float()


def _moved(parent: Tensor, base: Tensor) -> Iterator[Tensor]:
    """Yield the parts of a task vector."""
    for start in range(0, base.numel(), PART):
        yield part_of(parent, start, PART) - part_of(base, start, PART)


def _sum(histograms: Iterable[Tensor]) -> Tensor:
    counts = torch.zeros(trims.NUM_BINS, dtype=torch.int64)
    for histogram in histograms:
        counts += histogram
    return counts
