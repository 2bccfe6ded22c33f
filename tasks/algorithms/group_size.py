"""Choose the group size N from recorded pass rates, for all prompts or for each.

CompassMax, stage 1: a larger N gives fewer zero-variance groups and more signal per
prompt, but less per token; N is a compromise under a ceiling on the share of zero-variance groups.
The paper gives no value and no formula.

A prompt that solved s of n recorded responses has the pass rate Beta(s + 1/2, n - s + 1/2)
(Jeffreys), so the number solved of N new ones is beta-binomial. With pass/fail rewards and k of N
solved, the GRPO advantages of the group have mean size 2 sqrt(k (N - k)) / N: this is the
signal of the prompt. Divided by the tokens of N responses it is the signal per token.

Letters: P prompts, K = 0..N solved.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.errors import DataError

MAX_ZERO_VARIANCE = 0.5
"""Ceiling on the expected share of zero-variance groups; the paper's figure starts at 0.8 and
gives no ceiling."""


HALVINGS = 60
"""Halvings of the range of the one free factor, until float64 hardly changes."""


@dataclass(frozen=True, slots=True)
class GroupSize:
    """Expected results of a group size on these prompts."""

    size: int
    zero_variance: float
    """Expected share of zero-variance groups."""
    pass_at_n: float
    signal: float
    """Mean |advantage| per response."""
    signal_per_kilotoken: float


def predict_group_size(
    solved_P: ArrayLike, judged_P: ArrayLike, tokens_P: ArrayLike, size: int
) -> GroupSize:
    """Predict the results of one group size from the recorded pass rates.

    Args:
        solved_P: recorded responses that solved the prompt.
        judged_P: recorded responses with a verdict; 0 = none.
        tokens_P: mean length of a response.
        size: N.

    Raises:
        DataError: there are no prompts.
    """
    solved, scored, tokens = (
        np.asarray(x, dtype=np.float64) for x in (solved_P, judged_P, tokens_P)
    )
    if solved.size == 0:
        raise DataError("a group size cannot be chosen without recorded prompts")
    chance_PK = _chances(solved, scored, size)
    k_K = np.arange(size + 1)
    signal_P = chance_PK @ (2.0 * np.sqrt(k_K * (size - k_K)) / size)
    return GroupSize(
        size=size,
        zero_variance=float((chance_PK[:, 0] + chance_PK[:, -1]).mean()),
        pass_at_n=float((1.0 - chance_PK[:, 0]).mean()),
        signal=float(signal_P.mean()),
        signal_per_kilotoken=float(1e3 * signal_P.sum() / (size * np.maximum(tokens, 1.0)).sum()),
    )


def choose_group_size(options: Sequence[GroupSize]) -> GroupSize:
    """Choose the size with the most signal per token among those under the ceiling.

    If none is under the ceiling, choose the size with the fewest zero-variance groups.

    Raises:
        DataError: there are no options.
    """
    if not options:
        raise DataError("no group sizes to choose from")
    allowed = [option for option in options if option.zero_variance <= MAX_ZERO_VARIANCE]
    if not allowed:
        return min(options, key=lambda option: (option.zero_variance, option.size))
    return max(allowed, key=lambda option: (option.signal_per_kilotoken, -option.size))


def sizes_by_rate(
    rates_P: ArrayLike, tokens_P: ArrayLike, *, mean: int, bounds: tuple[int, int]
) -> list[int]:
    """Choose N of every prompt in proportion to 1 / pass rate, for the tokens of `mean` of each.

    So every prompt that the bounds do not hold is expected to be solved equally often. Sizes are
    rounded down or up so that the expected tokens are met to the nearest response; equal rates give
    `mean` each, and no prompts an empty list. Where the bounds alone cost more or less than `mean`
    of each, as they cannot where they hold `mean`, all sizes are at a bound.
    Differs: optimal allocation (Neyman 1934) would give the most to a rate of 1/2; measured at
    15d97121, it gained nothing (tasks/rl/TOKENS.md).

    Args:
        rates_P: expected pass rates, above 0.
        tokens_P: expected length of a response; below 1 counts as 1.
        mean: the constant size to compare with, within the bounds.
        bounds: least and largest size.
    """
    rates = np.asarray(rates_P, dtype=np.float64)
    tokens = np.maximum(np.asarray(tokens_P, dtype=np.float64), 1.0)
    if not rates.size:
        return []
    low, high = bounds
    # Tokens rise with the factor, from `low` for all to `high` for all.
    least, most = low * float(rates.min()), high * float(rates.max())
    for _ in range(HALVINGS):
        factor = (least + most) / 2.0
        excess = float((np.clip(factor / rates, low, high) - mean) @ tokens)
        least, most = (least, factor) if excess > 0.0 else (factor, most)
    exact = np.clip(least / rates, low, high)
    sizes = np.floor(exact + 1e-9)
    # The largest rests first, as seats are given to parties.
    for place in np.argsort(sizes - exact, kind="stable").tolist():
        if exact[place] > sizes[place] and (sizes - mean) @ tokens + tokens[place] / 2.0 <= 0.0:
            sizes[place] += 1.0
    return [int(size) for size in sizes]


def _chances(
    solved_P: NDArray[np.float64], judged_P: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Chance of k solved among `size` new responses, [P, K]."""
    k_1K = np.arange(size + 1)[None, :]
    won_P1, lost_P1 = solved_P[:, None] + 0.5, (judged_P - solved_P)[:, None] + 0.5
    # scipy.stats takes half a second to import, and one table of the ledger needs it.
    from scipy.stats import betabinom

    return betabinom.pmf(k_1K, size, won_P1, lost_P1)
