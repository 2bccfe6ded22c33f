"""Merges of task vectors, one tensor at a time: TIES, DARE, linear and SLERP."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import hardshrink

from data_schemas.settings import MergeMethod
from tasks.errors import SettingsError

# DARE: drop entries of a task vector at random and rescale the rest (arXiv 2311.03099).
#
# An entry is dropped by a number that depends on the seed, the parent, the name of the tensor and
# the index of the entry alone (Philox, a counter-based generator). So the result does not depend
# on the order in which tensors are merged, nor on how a tensor is split into shards.
#
# Differs: mergekit draws from torch's global generator, so its result depends on the order of the
# tensors. It rescales by the ratio of the L1 norms before and after; the paper, and this module,
# by
# 1 / density, which keeps the expected value of every entry. `normalize` of its dare_ties is off
# by
# default, which adds the entries that agree; the paper averages them, as TIES does.

_PER_BLOCK = 8
"""32-bit numbers of one step of Philox's counter."""


def stream_key(seed: int, parent: int, name: str) -> int:
    """Return the 128-bit key of the random numbers of one tensor of one parent."""
    # Not hash(), which differs from process to process.
    digest = hashlib.sha256(f"{seed}/{parent}/{name}".encode()).digest()
    return int.from_bytes(digest[:16], "little")


def kept_entries(key: int, density: float, start: int, stop: int) -> Tensor:
    """Draw which of the entries `start` to `stop` of a flat tensor are kept, as booleans."""
    block = start // _PER_BLOCK
    bits = np.random.Philox(key=key, counter=block)
    num_words = -(-stop // _PER_BLOCK) * 4 - block * 4
    draws = bits.random_raw(num_words).astype("<u8", copy=False).view("<u4")
    first = start - block * _PER_BLOCK
    mask = draws[first : first + stop - start] < np.uint64(round(density * 2**32))
    return torch.from_numpy(mask)


def drop(vector: Tensor, key: int, density: float, start: int = 0) -> Tensor:
    """Zero entries with probability 1 - density and divide the others by the density.

    A density of 1 returns the vector unchanged.

    Args:
        vector: a tensor, or a part of it in the order of its entries.
        start: index of its first entry in the whole tensor.
    """
    if density == 1.0:
        return vector
    mask = kept_entries(key, density, start, start + vector.numel()).view_as(vector)
    return torch.where(mask, vector / density, 0.0)


# Merges that are linear in the task vectors (parent minus base).
#
# The weighted mean is the model soup (arXiv 2203.05482): with scale 1 it is the mean of the
# parents. The weighted sum is task arithmetic (arXiv 2212.04089). Letters: M parents, always the
# first axis.
#
# Differs: mergekit averages the parents themselves; the mean of their task vectors is the same up
# to rounding, and a scale moves the result along the line from the base.


def weighted_sum(vectors_M: Tensor, weights_M: Tensor) -> Tensor:
    """Add the weighted task vectors."""
    return torch.tensordot(weights_M, vectors_M, dims=1)


def weighted_mean(vectors_M: Tensor, weights_M: Tensor) -> Tensor:
    """Average the task vectors; weights are positive."""
    return weighted_sum(vectors_M, weights_M) / weights_M.sum()


# SLERP: interpolate two tensors along the arc between them, each tensor as one flat vector.
#
# With an angle of 0 or pi the arc is not defined, and near it the formula divides by a small
# number: there the interpolation is linear (mergekit's threshold). Parents that were fine-tuned
# from one base nearly always lie within it, so SLERP of them is the linear mean.
#
# Differs: mergekit gives a tensor of zeros a right angle to any other; here, it has no angle and
# is interpolated linearly.

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


# TIES merging: trim, elect a sign, average the entries that agree (arXiv 2306.01708).
#
# Pure functions on fp32 task vectors (parent minus base) of any shape; reading and
# writing checkpoints is in tasks/training/merge. Letters: M parents, always the first axis.
#
# A trim keeps exactly k entries: all above a threshold, then entries equal to it in
# order of index. So the trim per tensor and the trim over the whole model are one
# function. Both thresholds are exact: that of a tensor is guessed from a sample and
# selected near the guess (`bracket`, `threshold_within`), that of a model is found from
# histograms (`histogram_threshold`), whose memory does not grow with the model.
#
# Differs: the paper trims over the whole task vector; mergekit trims per
# tensor. Both are implemented.
# Differs: of equal magnitudes at the threshold the lower index is kept; mergekit sorts without a
# stable order. A density that keeps nothing of a tensor is refused; mergekit keeps one entry.
# Differs: a tensor is one of the file; mergekit may fuse the experts of a layer before it trims
# (Qwen3-MoE).

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


# Merge one tensor of several models with the method of the settings.
#
# Every method makes one movement from the base, which `scale` multiplies: scale 0 is the base. The
# task vectors come in already sparsified (ties.trim, dare.drop), because a trim over the whole
# model has to know all of them.

MOVES: dict[MergeMethod, Callable[[Tensor, Tensor], Tensor]] = {
    MergeMethod.TIES: elected_mean,
    MergeMethod.TIES_MODEL: elected_mean,
    MergeMethod.LINEAR: weighted_mean,
    MergeMethod.TASK_ARITHMETIC: weighted_sum,
    MergeMethod.DARE_TIES: elected_mean,
    MergeMethod.DARE_LINEAR: weighted_sum,
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
    num_nonzero = int(np.count_nonzero(vectors_M.numpy() != 0.0))
    largest, smallest = vectors_M.amax(dim=0).numpy(), vectors_M.amin(dim=0).numpy()
    conflicts = int(np.count_nonzero((largest > 0.0) & (smallest < 0.0)))
    return Merged(base + scale * moved, num_nonzero, conflicts)
