"""Whether lengths predict zero-variance groups beyond the pass rates of a prompt and its family.

    python -m tests.bench.records.length runs

Each prediction is a logistic regression that is fitted to the phases of the other seeds and ranks
the groups of one seed; AUC is the chance that a zero-variance group ranks above another one.
`refitted` has the present prediction as log-odds and the predicted pass rate r as 2r - 1; the
others have a length beside them, as its logarithm alone and times 2r - 1, because longer may mean
more contrast where most responses are right and less where most are wrong. Lengths are those of
the prompt, and the recorded mean of its responses; those marked `in its family` are divided by the
mean of the family. Intervals resample prompts and compare both predictions on the same groups.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import rankdata

from tasks.algorithms.estimators import Interval
from tasks.errors import DataError
from tasks.platform.command_line import run
from tasks.rl.prompts import Family
from tests.bench.records.replay import Draw, interval, phases, read_arguments

RIDGE = 1e-2
"""Weight of the squared coefficients per mean log loss; features are standardised."""
Features = Callable[[Sequence[Draw]], NDArray[np.float64]]
"""Draws -> [draws, features]."""


def own_features(draws: Sequence[Draw]) -> NDArray[np.float64]:
    """The present prediction, and the side on which its pass rate lies."""
    odds = logit(np.array([draw.zero_variance for draw in draws]))
    return np.stack([odds, _side(draws)], axis=1)


def with_lengths(*lengths: Callable[[Draw], float]) -> Features:
    """Return the features of `own_features` and of each length."""

    def features(draws: Sequence[Draw]) -> NDArray[np.float64]:
        columns = []
        for length in lengths:
            logs = np.log([length(draw) for draw in draws])
            columns += [logs, logs * _side(draws)]
        return np.column_stack([own_features(draws), *columns])

    return features


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Chance that a positive draw has a higher score than another one; ties count half.

    Raises:
        DataError: all draws are positive, or none is.
    """
    ones = int(positive.sum())
    others = len(positive) - ones
    if not ones or not others:
        raise DataError("an AUC needs groups with zero variance and groups without")
    ranks = float(rankdata(scores)[positive].sum())
    return (ranks - ones * (ones + 1) / 2) / (ones * others)


def fit_and_rank(features: Features, train: Sequence[Draw], test: Sequence[Draw]) -> NDArray:
    """Fit a logistic regression on some draws and return the log-odds of others."""
    raw = features(train)
    centre, scale = raw.mean(axis=0), np.maximum(raw.std(axis=0), 1e-12)
    inputs = (raw - centre) / scale
    signs = np.where([draw.has_contrast for draw in train], -1.0, 1.0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (weights[0] + inputs @ weights[1:])
        pulls = -signs * expit(-margins) / len(signs)
        slope = np.r_[pulls.sum(), inputs.T @ pulls + RIDGE * weights[1:]]
        return float(
            np.logaddexp(0.0, -margins).mean() + RIDGE / 2 * weights[1:] @ weights[1:]
        ), slope

    weights = minimize(loss, np.zeros(raw.shape[1] + 1), jac=True, method="BFGS").x
    return weights[0] + (features(test) - centre) / scale @ weights[1:]


def relative(lengths: Callable[[Draw], float], draws: Sequence[Draw]) -> Callable[[Draw], float]:
    """Divide a length by the geometric mean of its family among some draws."""
    logs: dict[Family, list[float]] = {}
    for draw in draws:
        logs.setdefault(draw.family, []).append(math.log(lengths(draw)))
    means = {family: math.exp(sum(found) / len(found)) for family, found in logs.items()}
    return lambda draw: lengths(draw) / means[draw.family]


@dataclass(frozen=True, slots=True)
class Line:
    """One prediction on the groups of one seed."""

    name: str
    auc: float
    gained: Interval | None
    """Over the refitted prediction without a length, or of that over the present one."""


def compare(test: Sequence[Draw], train: Sequence[Draw]) -> list[Line]:
    """Rank the groups of one phase by every prediction, fitted to others."""
    zero = np.array([not draw.has_contrast for draw in test])
    prompts = [draw.row.problem_id for draw in test]
    every = [*test, *train]
    inside = [relative(length, every) for length in (_prompt, _responses)]
    present = np.array([draw.zero_variance for draw in test])
    refitted = fit_and_rank(own_features, train, test)
    ranked = [("refitted", refitted, present)]
    for name, lengths in (
        ("and prompt length", (_prompt,)),
        ("and recorded length", (_responses,)),
        ("and both", (_prompt, _responses)),
        ("and both in its family", inside),
    ):
        ranked.append((name, fit_and_rank(with_lengths(*lengths), train, test), refitted))

    def gained(scores: NDArray[np.float64], base: NDArray[np.float64]) -> Interval:
        return interval(prompts, lambda at: auc(scores[at], zero[at]) - auc(base[at], zero[at]))

    return [
        Line("present", auc(present, zero), None),
        *(Line(name, auc(scores, zero), gained(scores, base)) for name, scores, base in ranked),
    ]


def table_of(found: Mapping[str, Sequence[Line]]) -> Table:
    """Print the predictions of every seed."""
    table = Table(title="AUC for zero variance", box=None, title_justify="left")
    for head in ("seed", "prediction", "AUC", "gained"):
        table.add_column(head, no_wrap=True)
    for seed, lines in found.items():
        for line in lines:
            gain = line.gained
            shown = f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" if gain else ""
            table.add_row(seed, line.name, f"{line.auc:.3f}", shown)
    return table


def main(arguments: Sequence[str]) -> None:
    """Print the table.

    Raises:
        DataError: the store has a single phase, so that there is none to fit to.
    """
    found = phases(read_arguments("length", __doc__, arguments))
    if len(found) < 2:
        raise DataError("a prediction is fitted to phases of other seeds; give at least 2")
    lines = {}
    for name, test in found.items():
        others = [draw for other, draws in found.items() if other != name for draw in draws]
        lines[name] = compare(test, others)
    Console(highlight=False, width=120).print(table_of(lines))


def _side(draws: Sequence[Draw]) -> NDArray[np.float64]:
    return np.array([2.0 * draw.solved / (draw.solved + draw.failed) - 1.0 for draw in draws])


def _prompt(draw: Draw) -> float:
    return float(draw.row.prompt_tokens)


def _responses(draw: Draw) -> float:
    return max(1.0, draw.response_tokens)


if __name__ == "__main__":
    run(main)
