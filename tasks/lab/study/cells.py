"""From the measures of all cells to evidence: values, paired differences, their intervals.

A difference of two arms is shown only if its crossed interval excludes 0, the t interval of the
seeds' means as well (below five seeds), and the family of the study's comparisons leaves it after
Holm's correction. One seed shows nothing about a method: its interval is of that run.

Names of cells:

    ARM/accuracy/CHECKPOINT, ARM/macro/CHECKPOINT          mean over problems; over domains
    ARM/gain/FROM/TO, ARM/macro gain/FROM/TO, ARM/gain in DOMAIN/FROM/TO
                                                           DOMAIN of SOURCE where it has several
    ARM/METRIC                                             of tasks.lab.study.measures
    ARM/tokens per point                                   grading's too, over the merged model
    ARM minus OTHER/equal steps/CHECKPOINT, .../equal tokens, .../macro at equal tokens,
                    .../equal CPU seconds, .../macro at equal CPU seconds,
                    .../equal steps in DOMAIN/CHECKPOINT
    ARM minus OTHER/cost ratio                             tokens to the same accuracies, a factor
    ARM minus OTHER/METRIC
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from data_schemas.study import EvidenceCell, Measures
from tasks.algorithms.intervals import Interval
from tasks.errors import DataError
from tasks.lab.study import crossed_bootstrap
from tasks.lab.study.crossed_bootstrap import AccuracyCurve
from tasks.lab.study.measures import STEADINESS
from tasks.lab.study.report import SHARES

GRID = 4
"""Accuracies at which costs are compared, between the start and the end that all seeds reached."""
BEFORE_RL = "merged"
_SIGNED = ("reward", "gain")
"""Beginnings of metrics that may be negative; others count, or are shares or seconds."""
_ONE_RUN = "interval of this run, not of the method"
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Arm:
    """A variant over all seeds."""

    name: str
    measures: Sequence[Measures]
    problems: tuple[str, ...]
    """With a verdict at every checkpoint of every arm and seed."""

    def values(self, checkpoint: str) -> Array:
        """Accuracy of every seed and problem, [S, P]."""
        return np.array(
            [[one.accuracy[checkpoint][name] for name in self.problems] for one in self.measures],
            dtype=np.float64,
        )

    @cached_property
    def domains(self) -> list[str]:
        """Task family of every problem."""
        return [self.measures[0].domains[name] for name in self.problems]

    def spent(self, kind: str, checkpoints: Sequence[str]) -> Array:
        """Tokens or CPU seconds of every seed until these checkpoints, [C, S]."""
        costs = [{"tokens": one.tokens, "CPU seconds": one.seconds}[kind] for one in self.measures]
        return np.array([[float(one.get(name, 0)) for one in costs] for name in checkpoints])

    def curve(self, checkpoints: Sequence[str], kind: str = "tokens") -> AccuracyCurve:
        """Accuracy by what was spent, from the start of RL on."""
        values = np.array([self.values(name) for name in checkpoints])
        return AccuracyCurve(values, self.spent(kind, checkpoints))


def arms_of(measures: Sequence[Measures], seeds: Sequence[int]) -> dict[str, Arm]:
    """Group the cells by variant.

    Raises:
        DataError: a cell is missing, or two of them were evaluated on different problems.
    """
    by_name: dict[str, list[Measures]] = {}
    for one in measures:
        by_name.setdefault(one.variant, []).append(one)
    problems = {name for one in measures for held_out in one.accuracy.values() for name in held_out}
    for one in measures:
        for checkpoint, held_out in one.accuracy.items():
            if set(held_out) != problems:
                raise DataError(
                    f"{one.variant} with seed {one.seed} was evaluated on other problems at "
                    f"{checkpoint}; seeds and variants are paired by problem: leave curation out "
                    "of `seeded`, and the same in all variants"
                )
    decided = sorted(
        name
        for name in problems
        if all(held_out[name] is not None for one in measures for held_out in one.accuracy.values())
    )
    for name, runs in by_name.items():
        if [one.seed for one in runs] != list(seeds):
            raise DataError(f"the variant {name!r} does not have the seeds {list(seeds)}")
    return {name: Arm(name, runs, tuple(decided)) for name, runs in by_name.items()}


def cells_of(
    arms: Mapping[str, Arm],
    against: Mapping[str, str],
    checkpoints: Sequence[str],
    gains: Sequence[tuple[str, str]],
) -> dict[str, EvidenceCell]:
    """Compute all numbers of a study.

    Args:
        arms: by name.
        against: name of an arm to the one that it is compared with.
        checkpoints: that were evaluated, in the order of training.
        gains: pairs of them.
    """
    cells: dict[str, EvidenceCell] = {}
    family: dict[str, list[tuple[str, float]]] = {}
    for name, arm in arms.items():
        cells |= _of_arm(arm, checkpoints, gains)
        other = arms[against[name]]
        if other.name != name:
            pair_cells, chances = _of_pair(arm, other, checkpoints)
            cells |= pair_cells
            for kind, key, chance in chances:
                family.setdefault(kind, []).append((key, chance))
    for comparisons in family.values():
        adjusted = crossed_bootstrap.holm([chance for _, chance in comparisons])
        for (key, _), chance in zip(comparisons, adjusted, strict=True):
            if cells[key].shown and chance >= 1.0 - crossed_bootstrap.CONFIDENCE:
                note = f"not after Holm's correction for {len(comparisons)} comparisons"
                cells[key] = cells[key].model_copy(update={"shown": False, "note": note})
    return cells


def _of_arm(
    arm: Arm, checkpoints: Sequence[str], gains: Sequence[tuple[str, str]]
) -> dict[str, EvidenceCell]:
    cells: dict[str, EvidenceCell] = {}
    names = [name for name in checkpoints if name in arm.measures[0].accuracy]
    for name in names if arm.problems else ():
        cells[f"{arm.name}/accuracy/{name}"] = crossed(arm.values(name))
        cells[f"{arm.name}/macro/{name}"] = crossed(arm.values(name), arm.domains)
        for domain in dict.fromkeys(arm.domains):
            cells[f"{arm.name}/accuracy in {domain}/{name}"] = crossed(
                arm.values(name)[:, _places(arm, domain)]
            )
    for first, last in gains if arm.problems else ():
        if first in names and last in names:
            gained = arm.values(last) - arm.values(first)
            place = f"{first}/{last}"
            cells[f"{arm.name}/gain/{place}"] = crossed(gained, difference=True)
            cells[f"{arm.name}/macro gain/{place}"] = crossed(gained, arm.domains, difference=True)
            for domain in dict.fromkeys(arm.domains):
                cells[f"{arm.name}/gain in {domain}/{place}"] = crossed(
                    gained[:, _places(arm, domain)], difference=True
                )
                without = gained[:, ~_places(arm, domain)]
                if without.size:  # a study of one domain has nothing besides
                    cells[f"{arm.name}/gain without {domain}/{place}"] = crossed(
                        without, difference=True
                    )
    for metric in arm.measures[0].metrics:
        cells[f"{arm.name}/{metric}"] = _metric(arm, metric)
    if BEFORE_RL in names and names[-1] != BEFORE_RL and arm.measures[0].tokens[names[-1]]:
        gained = float((arm.values(names[-1]) - arm.values(BEFORE_RL)).mean())
        tokens = float(np.mean([one.tokens[names[-1]] for one in arm.measures]))
        if gained > 0.0:
            cells[f"{arm.name}/tokens per point"] = EvidenceCell(
                value=tokens / (100.0 * gained),
                runs=len(arm.measures),
                problems=len(arm.problems),
                note="grading included; meaningful at the same end only",
            )
    return cells


def _of_pair(
    arm: Arm, other: Arm, checkpoints: Sequence[str]
) -> tuple[dict[str, EvidenceCell], list[tuple[str, str, float]]]:
    """Cells of a comparison, and (kind, name, chance) of those that Holm's correction is for."""
    head = f"{arm.name} minus {other.name}"
    cells: dict[str, EvidenceCell] = {}
    chances: list[tuple[str, str, float]] = []

    def add(kind: str, key: str, values_SP: Array, domains: Sequence[str] = ()) -> None:
        cells[key] = crossed(values_SP, domains, difference=True)
        chances.append((kind, key, _chance(values_SP, domains)))

    names = [name for name in checkpoints if name in arm.measures[0].accuracy]
    if arm.problems and names:
        for name in names:
            add(
                f"steps/{name}",
                f"{head}/equal steps/{name}",
                arm.values(name) - other.values(name),
            )
        last = arm.values(names[-1]) - other.values(names[-1])
        add("macro", f"{head}/macro at equal steps/{names[-1]}", last, arm.domains)
        for domain in dict.fromkeys(arm.domains):
            add(
                "domains",
                f"{head}/equal steps in {domain}/{names[-1]}",
                last[:, _places(arm, domain)],
            )
        during = names[names.index(BEFORE_RL) :] if BEFORE_RL in names else []
        for kind in ("tokens", "CPU seconds") if len(during) > 1 else ():
            ours, theirs = arm.curve(during, kind), other.curve(during, kind)
            if not all((side.tokens_CS[-1] > side.tokens_CS[0]).all() for side in (ours, theirs)):
                continue  # an arm without RL has no curve
            budget = float(min(ours.tokens_CS[-1].min(), theirs.tokens_CS[-1].min()))
            same = crossed_bootstrap.at_tokens(ours.accuracy_CSP, ours.tokens_CS, budget)
            same = same - crossed_bootstrap.at_tokens(theirs.accuracy_CSP, theirs.tokens_CS, budget)
            add(kind, f"{head}/equal {kind}", same)
            add(f"macro {kind}", f"{head}/macro at equal {kind}", same, arm.domains)
            cells[f"{head}/budget of equal {kind}"] = EvidenceCell(
                value=budget, runs=len(arm.measures), note="the least total of all arms and seeds"
            )
            if kind == "tokens":
                cells[f"{head}/cost ratio"] = _cost_ratio(arm, other, ours, theirs)
    measured, steadiness = _of_metrics(arm, other, head)
    return cells | measured, chances + steadiness


def _of_metrics(
    arm: Arm, other: Arm, head: str
) -> tuple[dict[str, EvidenceCell], list[tuple[str, str, float]]]:
    """Compare what both arms measured; as `_of_pair`.

    Steadiness is one claim in several measures, of which one may look clear by itself.
    """
    cells, chances = dict[str, EvidenceCell](), list[tuple[str, str, float]]()
    for metric in arm.measures[0].metrics:
        if metric in other.measures[0].metrics:
            pairs = zip(arm.measures, other.measures, strict=True)
            values = [one.metrics[metric] - two.metrics[metric] for one, two in pairs]
            key = f"{head}/{metric}"
            cells[key] = over_seeds(values, difference=True)
            if metric.endswith(STEADINESS) and len(values) > 1:
                chances.append((STEADINESS, key, crossed_bootstrap.t_chance(values)))
    return cells, chances


def crossed(
    values_SP: Array, domains: Sequence[str] = (), *, difference: bool = False
) -> EvidenceCell:
    """Summarise values of seeds and problems."""
    interval = crossed_bootstrap.crossed_interval(values_SP, domains)
    num_seeds, num_problems = values_SP.shape
    names = tuple(domains) or ("all",) * num_problems
    seeds = tuple(crossed_bootstrap.weighted_mean(row[None], names) for row in values_SP)
    return EvidenceCell(
        value=interval.mean,
        low=interval.low,
        high=interval.high,
        runs=num_seeds,
        problems=num_problems,
        seeds=seeds,
        error=None
        if domains or num_seeds < 2
        else crossed_bootstrap.crossed_variance(values_SP) ** 0.5,
        shown=_is_shown(interval, seeds) if difference else None,
        note=_ONE_RUN if num_seeds == 1 else "",
    )


def over_seeds(
    values: Sequence[float],
    within: tuple[float, float] | None = None,
    *,
    difference: bool = False,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> EvidenceCell:
    """Summarise one value per seed; with one seed, by the interval within that run if any.

    Args:
        values: of the seeds.
        within: interval of the one run.
        difference: it may be shown.
        limits: no value can be outside, so no end of the interval is.
    """
    mean = float(np.mean(values))
    if len(values) > 1:
        interval = crossed_bootstrap.t_interval(values)
        is_shown = interval.low > 0.0 or interval.high < 0.0
        return EvidenceCell(
            value=mean,
            low=max(interval.low, limits[0]),
            high=min(interval.high, limits[1]),
            runs=len(values),
            seeds=tuple(values),
            shown=is_shown if difference else None,
        )
    low, high = within or (None, None)
    return EvidenceCell(
        value=mean,
        low=low,
        high=high,
        runs=1,
        seeds=tuple(values),
        shown=False if difference else None,
        note=_ONE_RUN if within else "one run",
    )


def _metric(arm: Arm, metric: str) -> EvidenceCell:
    within = arm.measures[0].intervals.get(metric)
    values = [one.metrics[metric] for one in arm.measures]
    lowest = -np.inf if metric.startswith(_SIGNED) or min(values) < 0.0 else 0.0
    highest = 1.0 if metric.startswith(SHARES) else np.inf
    return over_seeds(values, within, limits=(lowest, highest))


def _is_shown(interval: Interval, seeds: Sequence[float]) -> bool:
    if len(seeds) == 1 or interval.low <= 0.0 <= interval.high:
        return False
    if len(seeds) >= crossed_bootstrap.FEW_SEEDS:
        return True
    of_seeds = crossed_bootstrap.t_interval(seeds)
    return not of_seeds.low <= 0.0 <= of_seeds.high


def _chance(values_SP: Array, domains: Sequence[str]) -> float:
    names = tuple(domains) or ("all",) * values_SP.shape[1]
    draws = crossed_bootstrap.draw(values_SP.shape[0], names, seed=0)
    return crossed_bootstrap.two_sided_p(crossed_bootstrap.replicate_means(values_SP, draws))


def _cost_ratio(arm: Arm, other: Arm, ours: AccuracyCurve, theirs: AccuracyCurve) -> EvidenceCell:
    tops = [side.accuracy_CSP.mean(axis=2).max(axis=0).min() for side in (ours, theirs)]
    bottom = max(side.accuracy_CSP[0].mean(axis=1).max() for side in (ours, theirs))
    top = min(tops)
    grid = np.linspace(bottom, top, GRID + 2)[1:-1] if top > bottom else np.array([])
    draws = crossed_bootstrap.draw(len(arm.measures), ("all",) * len(arm.problems), seed=0)
    cost = crossed_bootstrap.cost_ratio(ours, theirs, grid, draws)
    runs, problems = len(arm.measures), len(arm.problems)
    if cost.ratio is None:
        return EvidenceCell(value=None, runs=runs, problems=problems, note=cost.reason)
    ratio = cost.ratio
    is_shown = runs > 1 and (ratio.low > 1.0 or ratio.high < 1.0)
    return EvidenceCell(
        value=ratio.mean,
        low=ratio.low,
        high=ratio.high,
        runs=runs,
        problems=problems,
        shown=is_shown,
        note=f"to accuracies of {grid[0]:.3f} to {grid[-1]:.3f}",
    )


def _places(arm: Arm, domain: str) -> NDArray[np.bool_]:
    return np.array(arm.domains) == domain
