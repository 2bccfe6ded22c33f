"""How much more of a prompt's responses the policy solves now than were solved when it was graded.

The share solved follows which prompts a step drew: a curriculum, skips and the mixture move it
while the policy stands still. They do not move the difference to each prompt's graded pass rate, as
long as the policy stands still: once it has learned, some prompts have gained more than others.
"""

import math
from collections.abc import Sequence

import numpy as np

RECENT = 5
"""Steps that are compared with those before."""
EARLIER = 20
"""Steps before, at most."""
LITTLE = 0.1
"""Loss of the share solved below which nothing is said."""
ERRORS = 3.5
"""Standard errors above which a loss is no chance [I]. A policy that stands still is accused once
in a hundred phases of 100 steps of 12 groups of 8; one that loses 0.3 of its share within five
steps is found in 98 to 100 of them, as soon as these steps end (200 simulated phases each)."""


def above_graded(rates: Sequence[float], graded: Sequence[float]) -> tuple[float, float] | None:
    """Compare groups of a step with grading.

    Pass rates of few responses lie apart from the true ones: where grading kept only prompts that
    were solved at least once, their true rates are lower, and the difference begins below 0.

    Args:
        rates: share of a group's responses with a verdict that solved the prompt.
        graded: pass rate of the same prompts when they were graded.

    Returns:
        Mean difference over the groups and its standard error; None for fewer than two groups.
    """
    if len(rates) < 2:
        return None
    differences = np.array(rates) - np.array(graded)
    return float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(rates))


def complaint(steps: Sequence[tuple[float, float]]) -> str:
    """Say that the policy solves less than it did some steps ago; '' if that may be chance.

    The newest `RECENT` steps are compared with up to `EARLIER` before them, of which there have to
    be two. The error of a step is taken to be the same in all of them: that of one is a poor guess.

    Args:
        steps: mean difference and standard error of every step, from `above_graded`.
    """
    if len(steps) < RECENT + 2:
        return ""
    means_S, errors_S = np.array(steps[-RECENT - EARLIER :]).T
    before, now = float(means_S[:-RECENT].mean()), float(means_S[-RECENT:].mean())
    spread = float(np.square(errors_S).mean())
    error = math.sqrt(spread * (1 / RECENT + 1 / (len(means_S) - RECENT)))
    if before - now <= max(LITTLE, ERRORS * error):
        return ""
    return (
        f"the policy loses what it could: in the last {RECENT} steps it solved {now:+.2f} against "
        f"grading, in the {len(means_S) - RECENT} before {before:+.2f} (standard error of the "
        f"difference {error:.2f}). Lower learning_rate; a committed step before the fall is where "
        "to begin again"
    )
