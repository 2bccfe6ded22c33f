"""Aggregate cells into the lines of the table, with confidence intervals.

The problem is the unit of the accuracy's interval (bootstrap, as in evaluation): the value of a
problem is its mean over the seeds that have a verdict. This does not cover the variance of training
between seeds, so a difference is called certain only if its interval excludes 0 and it has the same
sign for every seed.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.settings import EvaluationSettings
from tasks.ablation.measures import Cell
from tasks.ablation.variants import Variant
from tasks.algorithms.estimators import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    bootstrap_mean,
    paired_difference,
)
from tasks.errors import DataError

NOTHING_OFF, ALL_OFF = "full", "zv_off"
SMALLEST_GAIN = 0.001
"""A tenth of a point."""
PAPER_FALL = 0.17
"""CompassMax-V3-Thinking: relative reduction of the zero-variance rate."""


class Line(BaseModel):
    """One variant, over all seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    meaning: str
    against: str
    steps: float
    reward: float
    accuracy: Interval
    difference: Interval = Field(description="accuracy minus that of `against`, paired by problem")
    tokens_per_point: float | None = Field(
        description="generated tokens per point of accuracy above the start model; None: no gain"
    )
    saving: Interval = Field(
        description="share of the tokens per point of `against` that is saved, paired by problem"
    )
    seed_differences: tuple[float, ...]
    reward_differences: tuple[float, ...] = Field(description="per seed, against the same")
    flat_first: float
    flat_trained: float
    tokens_per_solved: float
    gradient_variance: float
    gradient_relative_variance: float
    staleness: float
    clip_share: float
    mismatch_nats: float
    wait_s: float
    verify_s: float
    step_s: float

    @property
    def certain(self) -> bool:
        """True if the interval excludes 0 and all seeds have the same sign."""
        one_sign = len({np.sign(value) for value in self.seed_differences}) == 1
        return one_sign and not self.difference.low <= 0.0 <= self.difference.high


class Fall(BaseModel):
    """Reduction of a zero-variance rate with all elimination stages on, against all off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: str
    without: float
    with_stages: float
    relative: Interval = Field(description="share by which it falls; bootstrap over all steps")
    seeds: tuple[float, ...]


class Orders(BaseModel):
    """Decoding steps of a training step on a limited number of slots, by order of its prompts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_drawn: float
    longest_first: float
    known_lengths: float


class AblationReport(BaseModel):
    """The whole study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int
    seeds: tuple[int, ...]
    problems: int = Field(description="held out")
    samples: int = Field(description="per problem")
    start: Interval = Field(description="accuracy of the model that every phase starts from")
    lines: tuple[Line, ...]
    falls: tuple[Fall, ...]
    orders: Orders = Field(description="over all phases")
    cells: tuple[Cell, ...]


def report_of(
    settings: EvaluationSettings,
    variants: Sequence[Variant],
    cells: Sequence[Cell],
    start: Mapping[str, float | None],
    max_tokens: int,
) -> AblationReport:
    """Build the report.

    Args:
        settings: settings of the held-out evaluations, whose seed the bootstrap uses.
        variants: in the order of the table, each with the variant it is compared with.
        cells: one per variant and seed.
        start: held-out accuracy by problem of the model that every phase starts from.
        max_tokens: token budget of every phase.

    Raises:
        DataError: a cell is missing, or two held-out evaluations used different problems.
    """
    by_name = {item.name: [c for c in cells if c.variant == item.name] for item in variants}
    first = variants[0].name
    seeds = tuple(cell.seed for cell in by_name[first])
    problems = set(cells[0].accuracy)
    for name, found in by_name.items():
        if seeds != tuple(cell.seed for cell in found):
            raise DataError(f"the variant {name!r} does not have the seeds {seeds} of {first!r}")
        if any(set(cell.accuracy) != problems for cell in found) or set(start) != problems:
            raise DataError(
                f"the held-out evaluations of {name!r} used different problems than the others"
            )
    return AblationReport(
        max_tokens=max_tokens,
        seeds=seeds,
        problems=len(problems),
        samples=settings.samples,
        start=bootstrap_mean(
            [value for value in start.values() if value is not None],
            seed=settings.seed,
        ),
        lines=tuple(
            _line(settings, item, by_name[item.name], by_name[item.against], start)
            for item in variants
        ),
        falls=_falls(settings, by_name) if ALL_OFF in by_name else (),
        orders=Orders(
            as_drawn=_mean(cells, lambda cell: cell.makespans.as_drawn),
            longest_first=_mean(cells, lambda cell: cell.makespans.longest_first),
            known_lengths=_mean(cells, lambda cell: cell.makespans.known_lengths),
        ),
        cells=tuple(cells),
    )


def _line(
    settings: EvaluationSettings,
    variant: Variant,
    mine: Sequence[Cell],
    other: Sequence[Cell],
    start: Mapping[str, float | None],
) -> Line:
    ours_P, theirs_P = _pair_accuracies(mine, other)
    tokens = [_mean(cells, lambda cell: cell.generated_tokens) for cells in (mine, other)]
    gains_2P = _gains(mine, other, start)
    gain = 100.0 * float(gains_2P[0].mean())
    return Line(
        variant=variant.name,
        meaning=variant.meaning,
        against=variant.against,
        steps=_mean(mine, lambda cell: cell.steps),
        reward=_mean(mine, lambda cell: cell.reward),
        accuracy=bootstrap_mean(list(_over_seeds(mine).values()), seed=settings.seed),
        difference=paired_difference(ours_P, theirs_P, seed=settings.seed),
        tokens_per_point=tokens[0] / gain if gain > 0.0 else None,
        saving=token_saving(gains_2P, tokens[0] / tokens[1], settings),
        seed_differences=tuple(
            float(np.mean(np.subtract(*_pair_accuracies([one], [two]))))
            for one, two in zip(mine, other, strict=True)
        ),
        reward_differences=tuple(
            one.reward - two.reward for one, two in zip(mine, other, strict=True)
        ),
        flat_first=_mean(mine, lambda cell: float(np.mean(cell.flat_first))),
        flat_trained=_mean(mine, lambda cell: float(np.mean(cell.flat_trained))),
        tokens_per_solved=_mean(mine, lambda cell: cell.tokens_per_solved),
        gradient_variance=_mean(mine, lambda cell: cell.gradient_variance),
        gradient_relative_variance=_mean(mine, lambda cell: cell.gradient_relative_variance),
        staleness=_mean(mine, lambda cell: cell.staleness),
        clip_share=_mean(mine, lambda cell: cell.clip_share),
        mismatch_nats=_mean(mine, lambda cell: cell.mismatch_nats),
        wait_s=_mean(mine, lambda cell: cell.wait_s),
        verify_s=_mean(mine, lambda cell: cell.verify_s),
        step_s=_mean(mine, lambda cell: cell.step_s),
    )


def _over_seeds(cells: Sequence[Cell]) -> dict[str, float]:
    """Mean accuracy of every problem over the cells that have a verdict for it."""
    found = {
        name: [value for cell in cells if (value := cell.accuracy[name]) is not None]
        for name in cells[0].accuracy
    }
    return {name: sum(values) / len(values) for name, values in found.items() if values}


def _pair_accuracies(
    mine: Sequence[Cell], other: Sequence[Cell]
) -> tuple[list[float], list[float]]:
    """Accuracies of the problems for which both sides have a verdict, in the same order."""
    ours, theirs = _over_seeds(mine), _over_seeds(other)
    shared = [name for name in ours if name in theirs]
    return [ours[name] for name in shared], [theirs[name] for name in shared]


def _gains(
    mine: Sequence[Cell], other: Sequence[Cell], start: Mapping[str, float | None]
) -> NDArray[np.float64]:
    """Gains of both sides over the start model on the problems that all three have, [2, P]."""
    ours, theirs = _over_seeds(mine), _over_seeds(other)
    known = {name: value for name, value in start.items() if value is not None}
    shared = [name for name in ours if name in theirs and name in known]
    before_P = np.array([known[name] for name in shared])
    return np.array([[side[name] for name in shared] for side in (ours, theirs)]) - before_P


def token_saving(
    gains_2P: NDArray[np.float64], token_ratio: float, settings: EvaluationSettings
) -> Interval:
    """Share of the other side's tokens per point of gain that is saved, bootstrap over problems.

    A side without gain counts as one with `SMALLEST_GAIN`.

    Args:
        gains_2P: gain of this side and of the other over the start model, by problem.
        token_ratio: generated tokens of this side over those of the other.
    """
    draws = np.random.default_rng(settings.seed)
    num_problems = gains_2P.shape[1]
    chosen_BP = draws.integers(0, num_problems, (RESAMPLES, num_problems))

    def saved(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1.0 - token_ratio * np.maximum(theirs, SMALLEST_GAIN) / np.maximum(
            ours, SMALLEST_GAIN
        )

    found_B = saved(gains_2P[0][chosen_BP].mean(axis=1), gains_2P[1][chosen_BP].mean(axis=1))
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(found_B, [tail, 1.0 - tail])
    mean = float(saved(gains_2P[0].mean(), gains_2P[1].mean()))
    return Interval(mean=mean, low=float(low), high=float(high))


def _falls(settings: EvaluationSettings, by_name: dict[str, list[Cell]]) -> tuple[Fall, ...]:
    rates: tuple[tuple[str, Callable[[Cell], Sequence[float]]], ...] = (
        ("first draws", lambda cell: cell.flat_first),
        ("trained batch", lambda cell: cell.flat_trained),
    )
    on, off = by_name[NOTHING_OFF], by_name[ALL_OFF]
    return tuple(
        Fall(
            rate=name,
            without=float(np.mean(_concatenate(off, of))),
            with_stages=float(np.mean(_concatenate(on, of))),
            relative=relative_fall(_concatenate(off, of), _concatenate(on, of), settings),
            seeds=tuple(
                1.0 - float(np.mean(of(one)) / max(np.mean(of(two)), 1e-12))
                for one, two in zip(on, off, strict=True)
            ),
        )
        for name, of in rates
    )


def relative_fall(
    before: Sequence[float], after: Sequence[float], settings: EvaluationSettings
) -> Interval:
    """Compute 1 - mean(after) / mean(before), with an interval from resampling the steps."""
    draws = np.random.default_rng(settings.seed)
    old, new = np.asarray(before), np.asarray(after)
    old_B = old[draws.integers(0, old.size, (RESAMPLES, old.size))].mean(axis=1)
    new_B = new[draws.integers(0, new.size, (RESAMPLES, new.size))].mean(axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(1.0 - new_B / np.maximum(old_B, 1e-12), [tail, 1.0 - tail])
    fall = 1.0 - new.mean() / max(float(old.mean()), 1e-12)
    return Interval(mean=float(fall), low=float(low), high=float(high))


def _concatenate(cells: Sequence[Cell], of: Callable[[Cell], Sequence[float]]) -> list[float]:
    return [value for cell in cells for value in of(cell)]


def _mean(cells: Sequence[Cell], of: Callable[[Cell], float]) -> float:
    return sum(of(cell) for cell in cells) / len(cells)
