"""Aggregate cells into the lines of the table, with confidence intervals.

The problem is the unit of the accuracy's interval (bootstrap, as in evaluation): the value of a
problem is its mean over the seeds that have a verdict. This does not cover the variance of training
between seeds, so a difference is called certain only if its interval excludes 0 and it has the same
sign for every seed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.settings import EvaluationSettings
from tasks.ablation.measures import Cell
from tasks.ablation.variants import Variant
from tasks.algorithms.estimators import CONFIDENCE, Interval, bootstrap_mean, paired_difference
from tasks.errors import DataError

NOTHING_OFF, ALL_OFF = "full", "zv_off"
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
    lines: tuple[Line, ...]
    falls: tuple[Fall, ...]
    orders: Orders = Field(description="over all phases")
    cells: tuple[Cell, ...]


def report_of(
    settings: EvaluationSettings,
    variants: Sequence[Variant],
    cells: Sequence[Cell],
    max_tokens: int,
) -> AblationReport:
    """Build the report.

    Args:
        settings: settings of the held-out evaluations, whose resamples and seed the bootstrap uses.
        variants: in the order of the table, each with the variant it is compared with.
        cells: one per variant and seed.
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
        if any(set(cell.accuracy) != problems for cell in found):
            raise DataError(
                f"the held-out evaluations of {name!r} used different problems than the others"
            )
    return AblationReport(
        max_tokens=max_tokens,
        seeds=seeds,
        problems=len(problems),
        samples=settings.samples,
        lines=tuple(
            _line(settings, item, by_name[item.name], by_name[item.against]) for item in variants
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
    settings: EvaluationSettings, variant: Variant, mine: Sequence[Cell], other: Sequence[Cell]
) -> Line:
    ours_P, theirs_P = _pair_accuracies(mine, other)
    draw = {"resamples": settings.resamples, "confidence": CONFIDENCE, "seed": settings.seed}
    return Line(
        variant=variant.name,
        meaning=variant.meaning,
        against=variant.against,
        steps=_mean(mine, lambda cell: cell.steps),
        reward=_mean(mine, lambda cell: cell.reward),
        accuracy=bootstrap_mean(list(_over_seeds(mine).values()), **draw),
        difference=paired_difference(ours_P, theirs_P, **draw),
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
    old_B = old[draws.integers(0, old.size, (settings.resamples, old.size))].mean(axis=1)
    new_B = new[draws.integers(0, new.size, (settings.resamples, new.size))].mean(axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(1.0 - new_B / np.maximum(old_B, 1e-12), [tail, 1.0 - tail])
    fall = 1.0 - new.mean() / max(float(old.mean()), 1e-12)
    return Interval(mean=float(fall), low=float(low), high=float(high))


def _concatenate(cells: Sequence[Cell], of: Callable[[Cell], Sequence[float]]) -> list[float]:
    return [value for cell in cells for value in of(cell)]


def _mean(cells: Sequence[Cell], of: Callable[[Cell], float]) -> float:
    return sum(of(cell) for cell in cells) / len(cells)
