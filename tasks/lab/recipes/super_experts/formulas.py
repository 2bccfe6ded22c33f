"""Which experts are Super Experts: few whose down projection writes massive activations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

# What a profile of a model's experts found.

PROFILE_FILE = "profile.json"
INPUTS_FILE = "inputs.json"
"""Files of a profile: ExpertProfile; settings in which the named experts are protected."""


class ExpertReading(BaseModel):
    """The experts that one reading of the rule names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reading: str = Field(description="'eq_6', 'algorithm' or 'code'")
    cut: float = Field(description="a tenth of the largest peak that it compares with")
    percentile: float = Field(description="99.5th percentile of the peaks it compares with")
    named: tuple[tuple[int, int], ...] = Field(description="layer and expert")


class ExpertProfile(BaseModel):
    """Peaks of all experts on calibration text, and which experts are Super Experts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    named: tuple[tuple[int, int], ...] = Field(
        description="by equation 6; empty = the model has none"
    )
    reason: str = Field(description="why these, or why none")
    readings: tuple[ExpertReading, ...]
    layers: tuple[int, ...] = Field(description="number of each MoE layer among all layers")
    peaks: tuple[tuple[float, ...], ...] = Field(
        description="largest |output| of each expert's down projection, by layer; 0 = not chosen"
    )
    tokens: tuple[tuple[int, ...], ...] = Field(description="that chose each expert, by layer")
    largest_hidden: tuple[float, ...] = Field(description="largest |h| after each layer")
    median_hidden: tuple[float, ...] = Field(description="median |h| after each layer")
    massive_layers: tuple[int, ...] = Field(description="layers with massive activations")
    calibration: str = Field(description="sha256 of the token rows, int32")
    calibration_tokens: int


# Which experts are Super Experts: few whose down projection writes massive activations.
#
# Source: arXiv 2507.23279. An expert is one if its peak a = max |down_proj output| is above
# P99.5(A) and above max(A) / 10, and its layer forms massive activations. The paper and its code
# differ in what A is, so that all three readings are computed:
#
#     eq. 6        A over the whole model, named among the layers that form massive activations
#     algorithm    A over those layers only
#     code         A over layers below round(0.75 L), whatever they form; the cut is max(A) // 10
#
# Differs: what "forms massive activations" means is not defined. Here the hidden state after the
# layer has an entry above 100 and above 1000 times the median (Sun et al., arXiv 2402.17762).
#
# Letters: L MoE layers, E experts.

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
