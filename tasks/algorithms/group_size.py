"""Choose the group size N from recorded pass rates, for all prompts or for each.

For all: CompassMax A.4, stage 1: a larger N gives fewer zero-variance groups and more signal per
prompt, but less per token; N is a compromise under a ceiling on the share of zero-variance groups.
The paper gives no value and no formula.

A prompt that solved s of n recorded responses has the pass rate Beta(s + 1/2, n - s + 1/2)
(Jeffreys), so the number solved of N new ones is beta-binomial. With pass/fail rewards and k of N
solved, the GRPO advantages of the group have mean size 2 sqrt(k (N - k)) / N: this is the
signal of the prompt. Divided by the tokens of N responses it is the signal per token.

For each: optimal allocation in stratified sampling at given costs (Neyman 1934; Cochran 1977,
section 5.5); that group sizes follow it is ours [I]. Every prompt counts once, whatever its N: each
response is compared with the mean of the others and has the weight 1 / N. With pass rate p and N
responses of pass/fail rewards the squares of what a prompt adds to the gradient sum to
p (1 - p) / (N - 1) on average: the noise. It costs N t tokens, t per response. For given tokens the
noise of all prompts is least where N - 1 is proportional to sqrt(p (1 - p) / t).

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

SPREAD = 2
"""Sizes by prompt lie between the mean size / SPREAD and times SPREAD [I]: with a mean of 8 from 4,
below which most groups lack contrast, to 16, the published size of Ring-lite."""
_BISECTIONS = 100
"""Halvings of the logarithm of the one free factor, until float64 does not change."""


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


def sizes_by_prompt(
    solved_P: ArrayLike, failed_P: ArrayLike, tokens_P: ArrayLike, *, mean: int
) -> NDArray[np.int64]:
    """Choose N of every prompt for the least noise at the tokens of `mean` responses of each.

    The pass rate p is Beta distributed, so E[p (1 - p)] stands for p (1 - p). Sizes are rounded
    within mean / SPREAD and mean x SPREAD, and at least 2, so the tokens are met approximately.
    Where all prompts are alike every size is `mean`; no prompts give an empty array.

    Args:
        solved_P: parameters of the Beta distributions; above 0.
        failed_P: likewise.
        tokens_P: expected length of a response; below 1 counts as 1.
        mean: the constant size to compare with; at least 2.
    """
    solved, failed, given = (
        np.asarray(x, dtype=np.float64) for x in (solved_P, failed_P, tokens_P)
    )
    tokens = np.maximum(given, 1.0)
    total = solved + failed
    slope = np.sqrt(solved * failed / (total * (total + 1.0)) / tokens)
    low, high = max(2, mean // SPREAD), mean * SPREAD

    def sizes(factor: float) -> NDArray[np.float64]:
        return np.clip(1.0 + factor * slope, low, high)

    if not slope.size:
        return np.zeros(0, dtype=np.int64)
    least, most = 1.0 / float(slope.max()), high / float(slope.min())
    for _ in range(_BISECTIONS):
        factor = float(np.sqrt(least * most))
        if float((sizes(factor) - mean) @ tokens) > 0.0:
            most = factor
        else:
            least = factor
    return np.rint(sizes(least)).astype(np.int64)


def _chances(
    solved_P: NDArray[np.float64], judged_P: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Chance of k solved among `size` new responses, [P, K]."""
    k_1K = np.arange(size + 1)[None, :]
    won_P1, lost_P1 = solved_P[:, None] + 0.5, (judged_P - solved_P)[:, None] + 0.5
    # scipy.stats takes half a second to import, and few phases choose sizes by prompt.
    from scipy.stats import betabinom

    return betabinom.pmf(k_1K, size, won_P1, lost_P1)
