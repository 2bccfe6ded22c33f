"""Which replacements of zero-variance groups pay, on recorded draws.

    python -m tests.bench.records.refills runs

An update of K groups with contrast gains g(K), say points of held-out accuracy, and costs T tokens.
Replacements that add k groups and t tokens pay if g(K + k) / (T + t) > g(K) / T, because the tokens
could as well have paid for first draws of later updates. With the elasticity a = K g'(K) / g(K)
that is, for few replacements, k / t > (1 / a) K / T: a replacement has to bring 1 / a times the
groups with contrast per token of an average first draw. g is concave (the noise of an update falls
with its groups, its length does not grow), so a <= 1, and a replacement that is drawn like a first
draw does not pay. One may pay whose predicted contrast per expected token is above that of the
step's first draws; but the same prediction can choose first draws, where g is steeper.

So the table has, for every rule, the groups with contrast per token among what it draws, relative
to first draws, and the gain per token of the whole update relative to one without replacements,
((K + k) / K)^a T / (T + t), for two values of a. Every group that is missing is replaced once; the
rule's prompts are taken from those that were replaced in the phases, with their average contrast
and tokens, as if the stream never ran out of them. Intervals resample steps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tasks.algorithms.estimators import Interval
from tasks.errors import DataError
from tasks.platform.command_line import run
from tests.bench.records.replay import Draw, interval, new_tokens, phases, read_arguments

ELASTICITIES = (1.0, 0.8)
"""1: the most that a concave gain can have. 0.8: from held-out accuracy per update of `zv_off` and
`dynamic` in tasks/ablation/README.md."""
SKIPPED_ABOVE = 0.4
"""The default of `zero_variance.skip_above`."""
Step = tuple[str, int]
"""Seed and step."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Draws of all phases, one value per draw."""

    steps: tuple[Step, ...]
    first: NDArray[np.bool_]
    """First draws; the others are replacements."""
    contrast: NDArray[np.float64]
    tokens: NDArray[np.float64]
    likely: NDArray[np.bool_]
    """Predicted to have contrast, as the default asks of first draws."""
    cheap: NDArray[np.bool_]
    """Predicted contrast per token is above that of the first draws of the step."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one rule is worth."""

    name: str
    taken: float
    """Share of the candidates that the rule accepts."""
    contrast_per_token: Interval
    """Of what it draws, relative to all first draws."""
    gains: tuple[Interval, ...]
    """Gain per token of the update relative to all first draws alone, per elasticity."""


def record(found: Mapping[str, Sequence[Draw]]) -> Recorded:
    """Collect the draws of all phases.

    Raises:
        DataError: nothing was replaced.
    """
    draws = [(seed, draw) for seed, phase in found.items() for draw in phase]
    first = np.array([draw.row.round == 0 for _, draw in draws])
    if not draws or first.all():
        raise DataError("the phases replaced no group, so they do not show what replacing brings")
    steps = tuple((seed, draw.row.step) for seed, draw in draws)
    chance = np.array([1.0 - draw.zero_variance for _, draw in draws])
    expected = np.array([draw.row.rollouts * draw.response_tokens for _, draw in draws])
    sums: dict[Step, tuple[float, float]] = {}
    for step, one, tokens, is_first in zip(steps, chance, expected, first, strict=True):
        if is_first:
            before = sums.get(step, (0.0, 0.0))
            sums[step] = before[0] + one, before[1] + tokens
    bars = np.array([sums[step][0] / sums[step][1] for step in steps])
    return Recorded(
        steps=steps,
        first=first,
        contrast=np.array([float(draw.has_contrast) for _, draw in draws]),
        tokens=np.array([float(new_tokens(draw.row)) for _, draw in draws]),
        likely=chance >= 1.0 - SKIPPED_ABOVE,
        cheap=chance / expected > bars,
    )


def rules(drawn: Recorded) -> list[Rule]:
    """Evaluate replacing by several rules, and choosing first draws by the same ones."""
    every = np.ones(len(drawn.steps), dtype=bool)
    return [
        _rule(drawn, name, accepted, replace=replace)
        for name, accepted, replace in (
            ("replace: all", every, True),
            ("replace: likely to have contrast", drawn.likely, True),
            ("replace: more contrast per token", drawn.cheap, True),
            ("first draws: likely to have contrast", drawn.likely, False),
            ("first draws: more contrast per token", drawn.cheap, False),
        )
    ]


def _rule(drawn: Recorded, name: str, accepted: NDArray[np.bool_], *, replace: bool) -> Rule:
    candidates = drawn.first != replace

    def relative(at: NDArray[np.intp]) -> float:
        return _per_token(drawn, at, candidates & accepted) / _per_token(drawn, at, drawn.first)

    def gain(elasticity: float) -> Callable[[NDArray[np.intp]], float]:
        def of(at: NDArray[np.intp]) -> float:
            if not replace:  # an update as large, of other prompts
                return relative(at)
            own = at[drawn.first[at]]
            taken = at[(candidates & accepted)[at]]
            groups, tokens = drawn.contrast[own].sum(), drawn.tokens[own].sum()
            missing = len(own) - groups
            more = missing * drawn.contrast[taken].mean()
            spent = missing * drawn.tokens[taken].mean()
            return float((1.0 + more / groups) ** elasticity / (1.0 + spent / tokens))

        return of

    return Rule(
        name,
        float(accepted[candidates].mean()),
        interval(drawn.steps, relative),
        tuple(interval(drawn.steps, gain(elasticity)) for elasticity in ELASTICITIES),
    )


def _per_token(drawn: Recorded, at: NDArray[np.intp], which: NDArray[np.bool_]) -> float:
    chosen = at[which[at]]
    return float(drawn.contrast[chosen].sum() / drawn.tokens[chosen].sum())


def table_of(found: Sequence[Rule]) -> Table:
    """Print the rules."""
    table = Table(title="Relative to all first draws", box=None, title_justify="left")
    gains = (f"gain per token, a = {one:g}" for one in ELASTICITIES)
    for head in ("rule", "accepted", "contrast per token", *gains):
        table.add_column(head, no_wrap=True)
    for rule in found:
        shown = [
            f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"
            for one in (rule.contrast_per_token, *rule.gains)
        ]
        table.add_row(rule.name, f"{rule.taken:.0%}", *shown)
    return table


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    found = phases(read_arguments("refills", __doc__, arguments))
    Console(highlight=False, width=120).print(table_of(rules(record(found))))


if __name__ == "__main__":
    run(main)
