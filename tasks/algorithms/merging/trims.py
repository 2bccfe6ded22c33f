"""Trims of task vectors: exactly k entries stay, those of the largest magnitude (arXiv 2306.01708).

Pure functions on fp32 task vectors (parent minus base) of any shape; reading and writing
checkpoints is in tasks/training/merge. All above a threshold stay, then entries equal to it in
order of index, so the trim of a tensor and the trim over a whole model are one function. Both
thresholds are exact: that of a tensor is guessed from a sample and selected near the guess
(`bracket`, `threshold_within`), that of a model is found from histograms (`histogram_threshold`),
whose memory does not grow with the model.

Differs: of equal magnitudes at the threshold the lower index is kept; mergekit sorts without a
stable order. A density that keeps nothing of a tensor is refused; mergekit keeps one entry.
Differs: a tensor is one of the file; mergekit may fuse the experts of a layer before it trims
(Qwen3-MoE).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import hardshrink

from tasks.errors import SettingsError

NUM_BINS = 1 << 16
"""Bins of one histogram: half of the 32 bits of a float."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Entries kept by one trim: those above `magnitude`, and `num_equal` equal to it."""

    magnitude: float
    num_equal: int

    def less(self, used: int) -> "Threshold":
        """Return what is left when `used` of the equal entries are kept."""
        return Threshold(self.magnitude, self.num_equal - used)


def num_kept(density: float, num_entries: int, *, name: str) -> int:
    """Count the entries a trim keeps: int(density * entries), as mergekit does.

    Raises:
        SettingsError: the result is 0: the tensor would silently fall back to the base.
    """
    count = int(density * num_entries)
    if count < 1:
        raise SettingsError(
            f"density {density} keeps none of the {num_entries} entries of {name}. "
            "Raise merge.density or set merge.method to 'ties_model'."
        )
    return count


def tensor_threshold(vector: Tensor, count: int) -> Threshold:
    """Find the trim that keeps the `count` largest magnitudes of one task vector, all in memory."""
    threshold = threshold_within([vector], count, (0.0, math.inf))
    assert threshold, f"{count} of {vector.numel()} entries"
    return threshold


def bracket(sample: Tensor, share: float) -> tuple[float, float]:
    """Guess two magnitudes that the threshold of a vector lies between, or is one of.

    Args:
        sample: some entries of the vector, at least one.
        share: of the entries that the trim keeps, in (0, 1].
    """
    ordered, last = np.sort(sample.abs().flatten().numpy()), sample.numel() - 1
    rank = (1.0 - share) * last
    # Five standard deviations of the rank in a random sample.
    spread = 5.0 * math.sqrt(share * (1.0 - share) * last) + 1.0
    low, high = max(0, int(rank - spread)), min(last, int(rank + spread))
    return float(ordered[low]), float(ordered[high])


def threshold_within(
    parts: Iterable[Tensor], count: int, bounds: tuple[float, float]
) -> Threshold | None:
    """Find the exact threshold of a vector if it lies within a bracket; otherwise return None.

    Entries inside the bracket are copied; those equal to its lower end are only counted.

    Args:
        parts: of the vector, in any order.
        count: largest magnitudes that the trim keeps, at least 1.
        bounds: lower and upper end; both may be the threshold.
    """
    low, high = bounds
    num_above, num_from_low, bracketed = 0, 0, [np.empty(0, np.float32)]
    for part in parts:
        magnitudes = part.abs().flatten().numpy()
        above = magnitudes > np.float32(high)
        inside = (magnitudes > np.float32(low)) ^ above
        num_above += int(np.count_nonzero(above))
        num_from_low += int(np.count_nonzero(magnitudes >= np.float32(low)))
        bracketed.append(magnitudes[np.flatnonzero(inside)])
    if not num_above < count <= num_from_low:
        return None
    candidates, rank = np.concatenate(bracketed), count - num_above
    place = candidates.size - rank
    if place < 0:
        return Threshold(low, -place)
    candidates.partition(place)
    cut = candidates[place]
    return Threshold(float(cut), rank - int(np.count_nonzero(candidates[place:] > cut)))


def histogram_threshold(histogram: Callable[[int | None], Tensor], count: int) -> Threshold:
    """Find the exact threshold of a vector in two passes, with no entry of it in memory.

    Args:
        histogram: the sum of `magnitude_histogram` over all parts, for its argument `upper`.
        count: largest magnitudes that the trim keeps: at least 1, at most all.
    """
    upper, rank = locate_bin(histogram(None), count)
    lower, num_equal = locate_bin(histogram(upper), rank)
    return threshold_from_bins(upper, lower, num_equal)


def magnitude_histogram(vector: Tensor, upper: int | None) -> Tensor:
    """Count magnitudes by the upper 16 bits of their float32 pattern, or by the lower 16.

    Non-negative floats sort like their bit patterns, so these bins are in order of magnitude.

    Args:
        vector: float32 task vector.
        upper: None counts upper halves; a number counts the lower halves of the
            magnitudes whose upper half it is.
    """
    bits = vector.abs().flatten().contiguous().view(torch.int32)
    if upper is None:
        return torch.bincount(bits >> 16, minlength=NUM_BINS)
    return torch.bincount(bits[bits >> 16 == upper] & 0xFFFF, minlength=NUM_BINS)


def locate_bin(counts: Tensor, count: int) -> tuple[int, int]:
    """Find the bin of the `count`-th largest entry, and its rank inside that bin (from 1)."""
    from_above = counts.flip(0).cumsum(0)
    position = int(torch.searchsorted(from_above, count))
    before = int(from_above[position - 1]) if position else 0
    return counts.numel() - 1 - position, count - before


def threshold_from_bins(upper: int, lower: int, num_equal: int) -> Threshold:
    """Build the threshold from the two halves of its bit pattern."""
    pattern = torch.tensor((upper << 16) | lower, dtype=torch.int32)
    return Threshold(float(pattern.view(torch.float32)), num_equal)


def count_equal(vector: Tensor, magnitude: float) -> int:
    """Count the entries of one magnitude."""
    return int(np.count_nonzero(vector.abs().numpy() == np.float32(magnitude)))


def trim(vector: Tensor, threshold: Threshold) -> tuple[Tensor, int]:
    """Zero the entries that the threshold drops; also return how many equal entries were kept."""
    limit = threshold.magnitude
    if not threshold.num_equal:
        return hardshrink(vector, limit), 0
    # hardshrink keeps what is above its limit: from the next smaller float on, equal entries too.
    trimmed = hardshrink(vector, float(np.nextafter(np.float32(limit), np.float32(-1.0))))
    equal = count_equal(vector, limit)
    if equal <= threshold.num_equal:
        return trimmed, equal
    at_limit = vector.abs() == limit
    late = at_limit.flatten().cumsum(0).view_as(at_limit) > threshold.num_equal
    return trimmed.masked_fill_(at_limit & late, 0.0), threshold.num_equal
