"""Many slices at once: small ones are pooled, and intervals are corrected for their number.

Bonferroni: with the tail of every interval divided by the number of slices, the chance that any
slice without a loss seems to lose is at most that of a single one, however the slices overlap
(a problem counts in its domain, its language, its source and its level).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from data_schemas.reports import Comparison
from tasks.algorithms.intervals import CONFIDENCE
from tasks.errors import DataError

MIN_PROBLEMS = 20
"""Problems that a slice needs to be judged alone; the bootstrap of fewer is too narrow, and of one
it has no width at all."""


def group_slices(
    sizes: Mapping[str, int], pool_of: Callable[[str], object]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Group slices to be judged: large ones alone, the small ones of a pool together.

    Args:
        sizes: problems of every slice.
        pool_of: what slices that may be pooled have in common. They must be disjoint.

    Returns:
        The groups, each of at least MIN_PROBLEMS problems, and the slices that are too small to
        be judged alone, whether their pool is among the groups or not; neither depends on the
        order of the slices.
    """
    small = sorted(name for name, problems in sizes.items() if problems < MIN_PROBLEMS)
    pools: dict[object, list[str]] = {}
    for name in small:
        pools.setdefault(pool_of(name), []).append(name)
    groups = [(name,) for name in sizes if sizes[name] >= MIN_PROBLEMS]
    groups += [
        tuple(pool) for pool in pools.values() if sum(sizes[name] for name in pool) >= MIN_PROBLEMS
    ]
    return sorted(groups), small


def pool_comparisons(parts: Sequence[Comparison], suite: str) -> Comparison:
    """Compare on the problems of disjoint slices together, from the comparisons on each.

    The variance over all problems is that within the slices, which their intervals imply, plus
    that between their means. So slices of one problem, whose intervals have no width, do not make
    the whole certain. One slice comes back with its own interval.

    Raises:
        DataError: there is no comparison.
    """
    if not parts:
        raise DataError(f"{suite}: no comparison to pool. Compare at least one slice.")
    if len(parts) == 1:
        return parts[0].model_copy(update={"suite": suite})
    problems = sum(part.problems for part in parts)
    mean = sum(part.problems * part.difference for part in parts) / problems
    between = sum(part.problems * (part.difference - mean) ** 2 for part in parts)

    def reach(ends: Iterable[float]) -> float:
        within = sum(
            (part.problems * (end - part.difference)) ** 2
            for part, end in zip(parts, ends, strict=True)
        )
        return float(np.sqrt(within + _quantile() ** 2 * between)) / problems

    return Comparison(
        suite=suite,
        parent=parts[0].parent,
        difference=mean,
        low=mean - reach(part.low for part in parts),
        high=mean + reach(part.high for part in parts),
        problems=problems,
    )


def correct_interval(comparison: Comparison, tests: int) -> Comparison:
    """Widen the interval of one of several comparisons so that all hold at once.

    Each end moves away from the mean by the ratio of Student's quantile, whose tail is divided by
    the number of comparisons, to the normal one. The ratio is above 1, so what is uncertain alone
    stays uncertain. An interval without width keeps none; one problem gives NaN.

    Args:
        comparison: with an interval at CONFIDENCE.
        tests: comparisons that are made, at least 1.
    """
    tail = (1.0 - CONFIDENCE) / (2 * tests)
    ratio = float(stdtrit(comparison.problems - 1, 1.0 - tail)) / _quantile()
    mean = comparison.difference
    return comparison.model_copy(
        update={
            "low": mean - ratio * (mean - comparison.low),
            "high": mean + ratio * (comparison.high - mean),
        }
    )


def least_share(count: float, problems: float, tests: int) -> float:
    """Return the lower end of the exact interval of a share (Clopper and Pearson 1934).

    Args:
        count: problems that have it; a part of one if some of its responses do.
        problems: all; responses to one problem are not independent, so they are no larger sample.
        tests: shares that are judged at once, by which the tail is divided.

    Returns:
        0 if none has it.
    """
    tail = (1.0 - CONFIDENCE) / (2 * tests)
    return float(betaincinv(count, problems - count + 1.0, tail)) if count > 0.0 else 0.0


def _quantile() -> float:
    """Quantile of the normal distribution at the ends of an interval."""
    return float(ndtri((1.0 + CONFIDENCE) / 2.0))
