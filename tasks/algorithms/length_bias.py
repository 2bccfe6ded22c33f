"""Whether what is trained has the lengths of what was generated.

A rule that lets responses into the loss by when they end, or by anything that goes with their
length, trains another distribution than the policy's. The test permutes who was let in: under the
null hypothesis admission does not depend on length. Units are permuted inside of their strata:
groups inside of a domain (siblings are alike, so they move together), responses inside of a group.
A rule that looks at rewards may well select lengths; that is reported and no fault.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

EXACT_UP_TO = 10_000
"""Arrangements that are counted one by one; of more, `DRAWS` are drawn."""
DRAWS = 2_000
LEVEL, FALSE_ALARM = 0.01, 0.001
"""Chance below which a step is found to select by length, and that of a phase's alarm."""
LITTLE = 0.05
"""Mean difference of log lengths that is no fault: five per cent."""
_CHUNK = 250
"""Arrangements that are held in memory at once."""
_ROUNDING = 1e-12


class LengthBias(NamedTuple):
    """How the lengths of what was let in differ from those of all candidates."""

    difference: float
    """Mean of log(1 + tokens) over the responses let in, minus that over all."""
    chance: float
    """Share of arrangements that differ as much or more, two-sided; 1 if all or none are let in."""
    candidates: int
    """Units that were permuted."""


def length_bias(
    lengths: Sequence[Sequence[int]],
    admitted: Sequence[bool],
    strata: Sequence[object],
    seed: int = 0,
) -> LengthBias:
    """Test whether units were let in whatever their length.

    Args:
        lengths: tokens of the responses of every unit, which is let in or left out as a whole.
        admitted: whether each was let in.
        strata: units are exchanged only with those of the same one.
        seed: of the arrangements drawn where there are too many to count.
    """
    sums_U = np.array([sum(map(math.log1p, unit)) for unit in lengths], dtype=np.float64)
    sizes_U = np.array([len(unit) for unit in lengths], dtype=np.float64)
    admitted_U = np.array(admitted, dtype=bool)
    if not sizes_U[admitted_U].sum() or not sizes_U[~admitted_U].sum():
        return LengthBias(0.0, 1.0, len(sums_U))
    names = {name: number for number, name in enumerate(dict.fromkeys(strata))}
    strata_U = np.array([names[name] for name in strata])
    overall = sums_U.sum() / sizes_U.sum()

    def differences(chosen_AU: NDArray[np.bool_]) -> NDArray[np.float64]:
        return (chosen_AU @ sums_U) / (chosen_AU @ sizes_U) - overall

    observed = float(differences(admitted_U[None])[0])
    total = math.prod(
        math.comb(int(inside.sum()), int(admitted_U[inside].sum()))
        for inside in (strata_U == number for number in names.values())
    )
    as_large, count = 0, 0
    arrangements = (
        _all(strata_U, admitted_U)
        if total <= EXACT_UP_TO
        else _shuffles(strata_U, admitted_U, seed)
    )
    for chosen_AU in arrangements:
        as_large += int((np.abs(differences(chosen_AU)) >= abs(observed) - _ROUNDING).sum())
        count += len(chosen_AU)
    if total > EXACT_UP_TO:
        return LengthBias(observed, (1 + as_large) / (1 + count), len(sums_U))
    return LengthBias(observed, as_large / count, len(sums_U))


def complaint(differences: Sequence[float], chances: Sequence[float]) -> str:
    """Say that the steps of a phase select by length; '' if that may be chance, or is little.

    A blind rule is found at `LEVEL` in as large a share of the steps, so that a few of many prove
    nothing: the number found has to be one that it reaches with less than `FALSE_ALARM`.

    Args:
        differences: `LengthBias.difference` of every step.
        chances: `LengthBias.chance` of every step; one that let in all or nothing is no test.
    """
    tested = [(gap, chance) for gap, chance in zip(differences, chances, strict=True) if chance < 1]
    rejections = sum(chance < LEVEL for _, chance in tested)
    if not rejections or bdtrc(rejections - 1, len(tested), LEVEL) >= FALSE_ALARM:
        return ""
    mean = math.fsum(gap for gap, _ in tested) / len(tested)
    if abs(mean) <= LITTLE:
        return ""
    side = "longer" if mean > 0 else "shorter"
    return (
        f"what was trained is {side} than what was generated, by a factor of {math.exp(mean):.2f}: "
        f"{rejections} of {len(tested)} steps show it at {100 * LEVEL:g} %. Time-outs of "
        "verifiers, budgets and masks select by length; find which (tokens/*_share, "
        "reward/abstained/*)"
    )


def _all(strata_U: NDArray[np.int64], admitted_U: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield every way to let in as many units of each stratum."""
    choices = [
        itertools.combinations(np.flatnonzero(strata_U == number), int(count))
        for number, count in enumerate(np.bincount(strata_U, weights=admitted_U))
    ]
    arrangements = itertools.product(*choices)
    while chunk := list(itertools.islice(arrangements, _CHUNK)):
        chosen_AU = np.zeros((len(chunk), len(admitted_U)), dtype=bool)
        for row, units in enumerate(chunk):
            chosen_AU[row, list(itertools.chain(*units))] = True
        yield chosen_AU


def _shuffles(
    strata_U: NDArray[np.int64], admitted_U: NDArray[np.bool_], seed: int
) -> Iterator[NDArray[np.bool_]]:
    """Yield seeded permutations of who is let in, each inside of its stratum."""
    generator = np.random.default_rng(seed)
    places_U = np.argsort(strata_U, kind="stable")
    for first in range(0, DRAWS, _CHUNK):
        # Sorting by stratum plus a number below 1 permutes units inside of their stratum.
        keys_AU = strata_U + generator.random((min(_CHUNK, DRAWS - first), len(strata_U)))
        chosen_AU = np.zeros(keys_AU.shape, dtype=bool)
        np.put_along_axis(chosen_AU, np.argsort(keys_AU, axis=1), admitted_U[places_U][None], 1)
        yield chosen_AU
