"""The rate of zero-variance groups, and how it is predicted.

Source: CompassMax. The paper skips prompts of certain outcome and gives no predictor: the
prediction from records is ours [I]. What such groups teach is a term (terms/rl_zvp.py).
Letters: N observations, F inputs.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

NEWTON_STEPS = 10
"""Steps of a logistic regression: twice what well-scaled inputs need for all digits."""


def zero_variance_probability(pass_rate: float, group_size: int) -> float:
    """Probability that independent pass/fail samples have zero variance: p^N + (1-p)^N."""
    return pass_rate**group_size + (1.0 - pass_rate) ** group_size


def zero_variance_expectation(solved: float, failed: float, group_size: int) -> float:
    """Probability of zero variance if the pass rate is Beta(solved, failed) (beta-binomial).

    It is above `zero_variance_probability` of the mean, because the rate itself is uncertain.

    Args:
        solved: responses that solved the prompt, those of the prior included; above 0.
        failed: likewise.
        group_size: N.
    """
    total = solved + failed
    return sum(
        math.prod((side + count) / (total + count) for count in range(group_size))
        for side in (solved, failed)
    )


def discounted_beta(
    believed: tuple[float, float], solved: float, failed: float, decay: float
) -> tuple[float, float]:
    """Update the Beta posterior of one prompt's pass rate by a group (MoPPS, arXiv 2507.04632).

    Args:
        believed: parameters (solved, failed) before it; (1, 1) without a group.
        solved: responses of the group.
        failed: likewise.
        decay: share of the earlier groups that is left, 0 to 1; the rest returns to (1, 1).
    """
    return (
        decay * believed[0] + (1.0 - decay) + solved,
        decay * believed[1] + (1.0 - decay) + failed,
    )


def ranking_quality(predicted: Sequence[float], occurred: Sequence[bool]) -> float | None:
    """Area under the ROC curve: how often what occurred was predicted above what did not.

    Ties count half; None where all or none occurred.
    """
    values, hits = np.array(predicted, dtype=float), np.array(occurred, dtype=bool)
    positive_P1, negative_N = values[hits, None], values[~hits]
    pairs = positive_P1.size * negative_N.size
    if not pairs:
        return None
    above, equal = (positive_P1 > negative_N).sum(), (positive_P1 == negative_N).sum()
    return float((above + 0.5 * equal) / pairs)


def shrunken_rate(counts: Sequence[tuple[float, float]], weight: float) -> float:
    """Estimate the pass rate of the innermost of nested groups of prompts.

    Every group's rate is drawn towards that of the group around it, the outermost one's to 1/2, by
    the weight of `weight` responses. Without counts it is 1/2.

    Args:
        counts: responses that solved their prompt and responses with a verdict, outermost first.
        weight: responses; above 0.
    """
    rate = 0.5
    for solved, scored in counts:
        rate = (solved + weight * rate) / (scored + weight)
    return rate


def moved_log_odds(counts: Sequence[tuple[float, float, int]], weight: float) -> float:
    """Estimate how far pass rates have moved since they were predicted, in log-odds.

    Of nested groups of prompts, the outermost one's movement is drawn towards none, every other
    one's to that of the group around it, by the weight of `weight` predictions.

    Args:
        counts: sum of predicted pass rates, each between 0 and 1 exclusively, sum of the observed
            ones, and their number, outermost first. Without any, nothing moves.
        weight: above 0.
    """
    moved = 0.0
    for predicted, observed, number in counts:
        if number:
            expected = expit(logit(predicted / number) + moved)
            rate = (observed + weight * expected) / (number + weight)
            moved += logit(rate) - logit(expected)
    return float(moved)


def fit_logistic(
    inputs_NF: NDArray[np.float64], happened_N: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit a logistic regression with a standard normal prior on every weight, by Newton's method.

    Source: Bishop, Pattern Recognition and Machine Learning (2006), 4.3.3 and 4.5.

    Returns:
        Weights [F]; zeros without observations.
    """
    weights_F = np.zeros(inputs_NF.shape[1])
    for _ in range(NEWTON_STEPS):
        expected_N = expit(inputs_NF @ weights_F)
        slope_F = inputs_NF.T @ (happened_N - expected_N) - weights_F
        curved_NF = inputs_NF * (expected_N * (1.0 - expected_N))[:, None]
        curvature_FF = inputs_NF.T @ curved_NF + np.eye(len(weights_F))
        weights_F = weights_F + np.linalg.solve(curvature_FF, slope_F)
    return weights_F
