"""Which experts are Super Experts: few whose down projection writes massive activations.

Source: arXiv 2507.23279. An expert is one if its peak a = max |down_proj output| is above
P99.5(A) and above max(A) / 10, and its layer forms massive activations. The paper and its code
differ in what A is, so that all three readings are computed:

    eq. 6        A over the whole model, named among the layers that form massive activations
    algorithm    A over those layers only
    code         A over layers below round(0.75 L), whatever they form; the cut is max(A) // 10

Differs: what "forms massive activations" means is not defined. Here the hidden state after the
layer has an entry above 100 and above 1000 times the median (Sun et al., arXiv 2402.17762).

Letters: L MoE layers, E experts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PERCENTILE = 99.5
SHARE_OF_LARGEST = 0.1
CODE_DEPTH = 0.75
MASSIVE, MASSIVE_TO_MEDIAN = 100.0, 1000.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The experts that one reading names."""

    cut: float
    """max(A) / 10."""
    percentile: float
    """P99.5(A)."""
    named: tuple[tuple[int, int], ...]
    """Layer and expert, in order."""


def massive_layers(largest_L: Sequence[float], median_L: Sequence[float]) -> tuple[int, ...]:
    """Name the layers after which the hidden state has massive activations.

    Args:
        largest_L: largest |h| after each layer.
        median_L: median |h| after each layer.
    """
    return tuple(
        layer
        for layer, (largest, median) in enumerate(zip(largest_L, median_L, strict=True))
        if largest > MASSIVE and largest > MASSIVE_TO_MEDIAN * median
    )


def read_eq_6(peaks_LE: NDArray[np.floating], massive: Sequence[int]) -> Reading:
    """Compare with the whole model. Without a massive layer none is named."""
    return _read(peaks_LE, range(len(peaks_LE)), massive)


def read_algorithm(peaks_LE: NDArray[np.floating], massive: Sequence[int]) -> Reading:
    """Compare with the massive layers. Without any, none is named and the cut is 0."""
    return _read(peaks_LE, massive, massive)


def read_code(peaks_LE: NDArray[np.floating]) -> Reading:
    """Compare with the first three quarters of the layers, which need not be massive."""
    layers = range(round(CODE_DEPTH * len(peaks_LE)))
    return _read(peaks_LE, layers, layers, floor=True)


def _read(
    peaks_LE: NDArray[np.floating],
    compared: Sequence[int],
    allowed: Sequence[int],
    *,
    floor: bool = False,
) -> Reading:
    pool = peaks_LE[list(compared)].flatten()
    if not pool.size:
        return Reading(0.0, 0.0, ())
    cut = float(pool.max()) * SHARE_OF_LARGEST
    cut = float(np.floor(cut)) if floor else cut
    percentile = float(np.percentile(pool, PERCENTILE))
    mask_LE = (peaks_LE > percentile) & (peaks_LE > cut)
    return Reading(
        cut,
        percentile,
        tuple(
            (int(layer), int(expert))
            for layer, expert in np.argwhere(mask_LE)
            if int(layer) in set(allowed)
        ),
    )
