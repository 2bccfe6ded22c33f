"""Rewards, corrected for the known error rates of a verifier, and near ties.

A verifier accepts a wrong response with probability f (false positive) and rejects a right one
with probability n (false negative). Of a verdict R in {0, 1}, (R - f) / (1 - f - n) has the mean 1
if the response is right and 0 if it is wrong.

Source: arXiv 2510.00915, backward correction.
Differs: no forward correction. It weighs an accepted response with n and a rejected one with n - 1,
which is R plus a constant: any baseline of the group removes it.
Limits: the correction is affine, so a group divided by its standard deviation loses it altogether,
and one that is centred only is scaled by 1 / (1 - f - n): it restores the weight of noisy problems
beside others, and its variance with it. The rates hold for errors independent of each other; a form
of wrong answers that is always accepted stays rewarded.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy


def corrected_reward(score: float, false_positive: float, false_negative: float) -> float:
    """Return (R - f) / (1 - f - n) of a verdict.

    Args:
        score: verdict in [0, 1]; one between is corrected like the mean of such verdicts.
        false_positive: f.
        false_negative: n, with f + n < 1; rates of 0 return the score.
    """
    return (score - false_positive) / (1.0 - false_positive - false_negative)


def noise_range(group_size: int, deviation: float) -> float:
    """Range of the scores of a group that noise alone exceeds with probability 5 %.

    The 95 % quantile of the range of `group_size` normal values: 2.77, 3.63, 4.29, 4.85 deviations
    for 2, 4, 8, 16 [I]. A deviation of 0 has 0.
    """
    if not deviation:
        return 0.0
    from scipy.stats import studentized_range  # a second to import, for few who need it

    return deviation * float(studentized_range.ppf(0.95, group_size, math.inf))


def no_contrast_probability(
    accepted: int, group_size: int, false_positive: float, false_negative: float
) -> float:
    """Return how likely all responses of a group are right, or all wrong, whatever the verdicts.

    The number of right ones is uniform before the verdicts [I]. Errors are independent, so that it
    is too low where they are not. Without errors it is 1 of a group of equal verdicts, else 0.

    Args:
        accepted: verdicts 1 of the group, 0 to `group_size`.
        group_size: verdicts, 1 or more.
        false_positive: f.
        false_negative: n, with f + n < 1.
    """
    right_R1 = np.arange(group_size + 1)[:, None]
    kept_A = np.arange(accepted + 1)  # right responses among the accepted ones
    likelihood_R = (
        _binomial(right_R1 - kept_A, right_R1, false_negative)
        * _binomial(accepted - kept_A, group_size - right_R1, false_positive)
    ).sum(axis=1)
    return float((likelihood_R[0] + likelihood_R[-1]) / likelihood_R.sum())


def _binomial(errors: NDArray[np.int64], tries: NDArray[np.int64], rate: float) -> NDArray:
    """Return the probability of so many errors; 0 for fewer than none or more than the tries."""
    possible = (errors >= 0) & (errors <= tries)
    errors = np.where(possible, errors, 0)
    ways = gammaln(tries + 1) - gammaln(errors + 1) - gammaln(tries - errors + 1)
    logs = ways + xlogy(errors, rate) + xlog1py(tries - errors, -rate)
    return np.where(possible, np.exp(logs), 0.0)
