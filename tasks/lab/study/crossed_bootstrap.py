"""Two arms compared over seeds and problems: intervals, equal tokens, cost to an accuracy.

Seeds and problems are *crossed*: every seed answers the same problems. A replicate of the bootstrap
draws the seeds, then one list of problems for all of them ("pigeonhole" bootstrap, Owen 2007).
Drawing problems anew for each seed would shrink the variance; drawing problems only describes the
runs that were made and not the method.

Letters: S seeds, P problems, B replicates, C points of a curve, T targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from tasks.algorithms.intervals import CONFIDENCE, Interval
from tasks.errors import DataError

REPLICATES = 10_000
FEW_SEEDS = 5
"""Below it the bootstrap of seeds is too narrow (3 seeds: 2/3 of the variance), and the t interval
of the seeds' means must exclude 0 as well."""
MAX_WITHOUT_CROSSING = 0.05
"""Share of replicates that do not reach a target, above which a cost has no interval."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draws:
    """Weights of the replicates; every row sums to 1."""

    seeds_BS: Array
    problems_BP: Array


@lru_cache(maxsize=32)
def draw(
    num_seeds: int, domains_P: tuple[str, ...], *, seed: int, replicates: int = REPLICATES
) -> Draws:
    """Draw seeds and problems with replacement.

    Args:
        num_seeds: S; one seed is drawn every time, so that the interval is of that run only.
        domains_P: problems are drawn within their domain, and each domain has the same weight
            (macro average); one name for all: every problem has the same weight.
        seed: of the draws.
        replicates: B.

    Raises:
        DataError: there is no seed or no problem.
    """
    if num_seeds < 1 or not domains_P:
        raise DataError(f"a comparison of {num_seeds} seeds and {len(domains_P)} problems is empty")
    generator = np.random.default_rng(seed)
    shares = np.full(num_seeds, 1.0 / num_seeds)
    seeds_BS = generator.multinomial(num_seeds, shares, replicates) / num_seeds
    problems_BP = np.zeros((replicates, len(domains_P)))
    names = np.array(domains_P)
    for name in dict.fromkeys(domains_P):
        places = np.flatnonzero(names == name)
        counts = generator.multinomial(
            places.size, np.full(places.size, 1 / places.size), replicates
        )
        problems_BP[:, places] = counts / places.size
    return Draws(seeds_BS, problems_BP / len(dict.fromkeys(domains_P)))


def replicate_means(values_SP: Array, draws: Draws) -> Array:
    """Return the mean of every replicate, [B]."""
    return np.einsum("bs,sp,bp->b", draws.seeds_BS, values_SP, draws.problems_BP, optimize=True)


def weighted_mean(values_SP: Array, domains_P: Sequence[str]) -> float:
    """Return the mean over seeds and problems, with the same weight for every domain."""
    names = np.array(domains_P)
    return float(np.mean([values_SP[:, names == name].mean() for name in dict.fromkeys(domains_P)]))


def percentile_interval(mean: float, values_B: ArrayLike) -> Interval:
    """Return the percentile interval of replicates around an estimate."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(np.asarray(values_B), [tail, 1.0 - tail])
    return Interval(mean=mean, low=float(low), high=float(high))


def crossed_interval(
    values_SP: ArrayLike,
    domains_P: Sequence[str] = (),
    *,
    seed: int = 0,
) -> Interval:
    """Compute the mean over seeds and problems with its crossed bootstrap interval.

    Args:
        values_SP: one value per seed and problem, such as differences of two arms.
        domains_P: for a macro average; () = every problem has the same weight.
        seed: of the draws.

    Raises:
        DataError: there are no values, or one is not finite.
    """
    values = np.asarray(values_SP, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.all(np.isfinite(values)):
        raise DataError(f"a comparison needs finite values [S, P], got shape {values.shape}")
    domains = tuple(domains_P) or ("all",) * values.shape[1]
    draws = draw(values.shape[0], domains, seed=seed, replicates=REPLICATES)
    return percentile_interval(weighted_mean(values, domains), replicate_means(values, draws))


def crossed_variance(values_SP: ArrayLike) -> float:
    """Variance of the mean by moments: (MS_s + MS_p - MS_sp) / (S P), not below 0.

    Unbiased where the bootstrap is not. With one seed or one problem it is not defined and NaN.
    """
    values = np.asarray(values_SP, dtype=np.float64)
    num_seeds, num_problems = values.shape
    if num_seeds < 2 or num_problems < 2:
        return float("nan")
    seeds_S, problems_P, mean = values.mean(axis=1), values.mean(axis=0), values.mean()
    of_seeds = num_problems * np.sum((seeds_S - mean) ** 2) / (num_seeds - 1)
    of_problems = num_seeds * np.sum((problems_P - mean) ** 2) / (num_problems - 1)
    rest = values - seeds_S[:, None] - problems_P + mean
    of_rest = np.sum(rest**2) / ((num_seeds - 1) * (num_problems - 1))
    return max(0.0, float(of_seeds + of_problems - of_rest) / (num_seeds * num_problems))


def t_interval(means_S: ArrayLike) -> Interval:
    """Student's interval of the mean of the seeds.

    Raises:
        DataError: one seed has no spread.
    """
    means = np.asarray(means_S, dtype=np.float64)
    if means.size < 2:
        raise DataError("an interval over seeds needs at least two seeds")
    half = student.ppf((1.0 + CONFIDENCE) / 2.0, means.size - 1) * means.std(ddof=1)
    half /= np.sqrt(means.size)
    return Interval(
        mean=float(means.mean()), low=float(means.mean() - half), high=float(means.mean() + half)
    )


def t_chance(means_S: ArrayLike) -> float:
    """Return the two-sided probability of Student's test that the mean of the seeds is 0.

    Equal values are certain, unless all are 0.

    Raises:
        DataError: one seed has no spread.
    """
    means = np.asarray(means_S, dtype=np.float64)
    if means.size < 2:
        raise DataError("a test over seeds needs at least two seeds")
    error = means.std(ddof=1) / np.sqrt(means.size)
    if error == 0.0:
        return 0.0 if means.any() else 1.0
    return 2.0 * float(student.sf(abs(means.mean()) / error, means.size - 1))


def two_sided_p(values_B: ArrayLike) -> float:
    """Return the two-sided probability of a sign as clear as that of these replicates."""
    values = np.asarray(values_B)
    beyond = min(int(np.sum(values <= 0.0)), int(np.sum(values >= 0.0)))
    return min(1.0, 2.0 * (1 + beyond) / (1 + values.size))


def holm(probabilities: Sequence[float]) -> list[float]:
    """Adjust the probabilities of several comparisons (Holm 1979), in the same order."""
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    adjusted, largest = [0.0] * len(probabilities), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * probabilities[place]))
        adjusted[place] = largest
    return adjusted


def at_tokens(values_CSP: Array, tokens_CS: Array, budget: float) -> Array:
    """Return the values that every seed has after `budget` tokens, [S, P], linear in tokens.

    Raises:
        DataError: a seed's curve does not reach from below to above the budget.
    """
    rows = []
    for place in range(tokens_CS.shape[1]):
        tokens_C = tokens_CS[:, place]
        if not tokens_C[0] <= budget <= tokens_C[-1]:
            raise DataError(
                f"the curve of a seed spans {tokens_C[0]:.0f} to {tokens_C[-1]:.0f} tokens, "
                f"which {budget:.0f} is not in"
            )
        right = int(np.clip(np.searchsorted(tokens_C, budget), 1, tokens_C.size - 1))
        width = tokens_C[right] - tokens_C[right - 1]
        share = (budget - tokens_C[right - 1]) / width if width else 1.0
        rows.append((1 - share) * values_CSP[right - 1, place] + share * values_CSP[right, place])
    return np.array(rows)


def isotonic(values_C: ArrayLike) -> Array:
    """Return the closest ascending values (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in np.asarray(values_C, dtype=np.float64):
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.concatenate([np.full(size, mean) for mean, size in blocks])


def cost_of(tokens_C: ArrayLike, accuracy_C: ArrayLike, target: float) -> float:
    """Tokens at which the isotonic curve first reaches a target, linear between points; or inf.

    A raw first crossing of a noisy curve would be biased early.
    """
    tokens, accuracy = np.asarray(tokens_C, dtype=np.float64), isotonic(accuracy_C)
    reached = np.flatnonzero(accuracy >= target)
    if not reached.size:
        return float("inf")
    place = int(reached[0])
    if place == 0:
        return float(tokens[0])
    rise = accuracy[place] - accuracy[place - 1]
    share = (target - accuracy[place - 1]) / rise
    return float(tokens[place - 1] + share * (tokens[place] - tokens[place - 1]))


@dataclass(frozen=True, slots=True)
class CostRatio:
    """Tokens of one arm over those of another to reach the same accuracies."""

    ratio: Interval | None
    """None: refused, see `reason`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AccuracyCurve:
    """An arm: accuracies at the same places of all seeds, and the tokens spent until there."""

    accuracy_CSP: Array
    tokens_CS: Array

    def replicates(self, draws: Draws) -> tuple[Array, Array]:
        """Mean tokens and mean accuracy of every replicate, [B, C] each."""
        tokens_BC = draws.seeds_BS @ self.tokens_CS.T
        means_BC = np.stack([replicate_means(one, draws) for one in self.accuracy_CSP], axis=1)
        return tokens_BC, means_BC

    @property
    def mean(self) -> tuple[Array, Array]:
        """Tokens and accuracy over all seeds and problems, [C] each."""
        return self.tokens_CS.mean(axis=1), self.accuracy_CSP.mean(axis=(1, 2))


def log_ratios(ours: tuple[Array, Array], theirs: tuple[Array, Array], grid_T: Array) -> Array:
    """Log ratios of the costs to reach every target, [T]; not finite where one is not reached."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array(
            [np.log(cost_of(*ours, target) / cost_of(*theirs, target)) for target in grid_T]
        )


COST_REPLICATES = 2000
"""Replicates of a cost ratio, each of which searches both curves at every accuracy of the grid."""


def cost_ratio(
    ours: AccuracyCurve, theirs: AccuracyCurve, grid_T: ArrayLike, draws: Draws
) -> CostRatio:
    """Compare the tokens to common accuracies, as the mean of the log ratios over a grid.

    Refused where it would be an artefact: a plateau has no cost ratio, and neither has a target
    that more than 5 % of the replicates do not reach.

    Args:
        ours: one arm.
        theirs: the other.
        grid_T: accuracies that all seeds of both arms reached.
        draws: of seeds and problems; the first COST_REPLICATES of them are used.
    """
    grid = np.asarray(grid_T, dtype=np.float64)
    if not grid.size:
        return CostRatio(None, "no accuracy above the start was reached by every seed of both")
    curves = [side.replicates(draws) for side in (ours, theirs)]
    for (_, means_BC), side in zip(curves, (ours, theirs), strict=True):
        level = isotonic(side.mean[1])
        right = int(np.clip(np.searchsorted(level, grid[-1]), 1, level.size - 1))
        rise_B = means_BC[:, right] - means_BC[:, right - 1]
        if np.quantile(rise_B, (1.0 - CONFIDENCE) / 2.0) <= 0.0:
            return CostRatio(None, "a plateau: the rise at the target is within its noise")
    resampled = []
    for place in range(min(COST_REPLICATES, len(draws.seeds_BS))):
        sides = [(tokens[place], means[place]) for tokens, means in curves]
        resampled.append(float(log_ratios(sides[0], sides[1], grid).mean()))
    finite = np.isfinite(resampled)
    if 1.0 - finite.mean() > MAX_WITHOUT_CROSSING:
        return CostRatio(None, f"{1.0 - finite.mean():.0%} of the replicates do not reach it")
    mean = float(np.exp(log_ratios(ours.mean, theirs.mean, grid).mean()))
    return CostRatio(percentile_interval(mean, np.exp(np.array(resampled)[finite])))
