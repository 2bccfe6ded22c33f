"""What group sizes by prompt promise, on recorded groups.

    python -m tests.bench.records.group_sizes runs

Gain per token, as in `group_parts`: (sum of s)^2 / (sum of v x sum of tokens), with s the true
slope of a prompt, (p q)^2, and v = p q / (N - 1) the noise that its responses add, each compared
with the mean of the others and weighted by 1 / N. p q and (p q)^2 are estimated without bias from
the numbers solved of a group; sizes depend on earlier groups only, so the sums are unbiased for any
rule. Rewards are pass or fail. Intervals resample prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.table import Table

from data_schemas.rl_settings import MEAN_GROUP_SIZE
from tasks.algorithms.estimators import Interval
from tasks.algorithms.group_size import MAX_ZERO_VARIANCE, sizes_by_prompt
from tasks.algorithms.zero_variance import zero_variance_expectation
from tasks.errors import DataError
from tasks.platform.command_line import run
from tests.bench.records.replay import Draw, interval, new_tokens, phases, read_arguments

LARGEST = 32
MOMENTS = 4
"""Verdicts of a group that (p q)^2 needs."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A rule on the groups of one seed, relative to the constant size."""

    name: str
    mean: float
    deviation: float
    """Of the sizes."""
    tokens: float
    gain: Interval


def slope_moments(solved: ArrayLike, scored: ArrayLike) -> tuple[NDArray, NDArray]:
    """Estimate p q and (p q)^2 without bias from k of n solved, n >= 4."""
    k, n = (np.asarray(x, dtype=np.float64) for x in (solved, scored))
    pairs = k * (n - k)
    first = pairs / (n * (n - 1.0))
    return first, first * (k - 1.0) * (n - k - 1.0) / ((n - 2.0) * (n - 3.0))


def ceiling_size(draw: Draw) -> int:
    """Smallest N whose group has zero variance with at most MAX_ZERO_VARIANCE, up to LARGEST."""
    for size in range(2, LARGEST):
        if zero_variance_expectation(draw.solved, draw.failed, size) <= MAX_ZERO_VARIANCE:
            return size
    return LARGEST


def promises(draws: Sequence[Draw]) -> list[Promise]:
    """Evaluate every rule on the groups of a phase.

    Raises:
        DataError: no group has four verdicts.
    """
    usable = [draw for draw in draws if draw.row.rollouts - draw.row.abstained >= MOMENTS]
    if not usable:
        raise DataError("no group has four verdicts, which the noise is estimated from")
    scored = np.array([draw.row.rollouts - draw.row.abstained for draw in usable])
    first, second = slope_moments([draw.row.solved for draw in usable], scored)
    spent = np.array([new_tokens(draw.row) / draw.row.rollouts for draw in usable])
    prompts = [draw.row.problem_id for draw in usable]
    solved = [draw.solved for draw in usable]
    failed = [draw.failed for draw in usable]
    lengths = np.array([draw.response_tokens for draw in usable])
    constant = np.full(len(usable), float(MEAN_GROUP_SIZE))

    def gain(sizes: NDArray[np.float64], at: NDArray[np.intp]) -> float:
        noise = (first[at] / (sizes[at] - 1.0)).sum()
        return float(second[at].sum() ** 2 / (noise * (sizes[at] * spent[at]).sum()))

    def promise(name: str, sizes: NDArray[np.float64]) -> Promise:
        return Promise(
            name,
            float(sizes.mean()),
            float(sizes.std()),
            float((sizes * spent).sum() / (constant * spent).sum()),
            interval(prompts, lambda at: gain(sizes, at) / gain(constant, at)),
        )

    alike = np.full(len(usable), lengths.mean())
    by_prompt, by_rate = (
        sizes_by_prompt(solved, failed, tokens, mean=MEAN_GROUP_SIZE).astype(np.float64)
        for tokens in (lengths, alike)
    )
    return [
        promise("by prompt", by_prompt),
        promise("by pass rate alone", by_rate),
        promise("twice as large", 2.0 * constant),
        promise(
            f"least N with {MAX_ZERO_VARIANCE:.0%} zero variance",
            np.array([float(ceiling_size(draw)) for draw in usable]),
        ),
    ]


def table_of(found: Mapping[str, Sequence[Promise]]) -> Table:
    """Print the rules of every seed."""
    title = f"Relative to {MEAN_GROUP_SIZE} responses of every prompt"
    table = Table(title=title, box=None, title_justify="left")
    for head in ("seed", "size", "mean N", "deviation", "tokens", "gain per token"):
        table.add_column(head, no_wrap=True)
    for seed, lines in found.items():
        for line in lines:
            table.add_row(
                seed,
                line.name,
                f"{line.mean:.2f}",
                f"{line.deviation:.2f}",
                f"{line.tokens:.2f}",
                f"{line.gain.mean:.2f} [{line.gain.low:.2f}, {line.gain.high:.2f}]",
            )
    return table


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    found = phases(read_arguments("group_sizes", __doc__, arguments))
    lines = {seed: promises(draws) for seed, draws in found.items()}
    Console(highlight=False, width=120).print(table_of(lines))


if __name__ == "__main__":
    run(main)
