"""A scalar reward from comparisons: the Bradley-Terry loss, and a margin that defines ties.

Source: Bradley and Terry 1952: P(a beats b) = sigmoid(r_a - r_b), so the loss of a decided
comparison is -log sigmoid(r_winner - r_loser). Only differences matter: the scale has no zero.

The model has no ties, so ties are excluded from training. At prediction time a comparison is a
tie if the two scores differ by at most a margin.

Letters: N comparisons.
"""

import numpy as np
import torch
from numpy.typing import NDArray


def preference_loss(winner_N: torch.Tensor, loser_N: torch.Tensor) -> torch.Tensor:
    """Mean of -log sigmoid(winner - loser); ln 2 where the scores are equal.

    The gradient by a winner's score is -(1 - P(winner)) / N; by the loser's, its negative.
    """
    return -torch.nn.functional.logsigmoid(winner_N - loser_N).mean()


def verdicts(difference_N: NDArray[np.float64], margin: float) -> NDArray[np.int64]:
    """Return 1 (first is better), -1 (second is better) or 0 (within the margin)."""
    signs_N = np.sign(difference_N).astype(np.int64)
    return np.where(np.abs(difference_N) <= margin, 0, signs_N)


def tie_margin(difference_N: NDArray[np.float64], label_N: NDArray[np.int64]) -> float:
    """Find the margin that makes the most verdicts right; the smallest one if there are several.

    Args:
        difference_N: score of the first answer minus score of the second.
        label_N: 1, -1 or 0 for a tie.

    Returns:
        0, or a value half way between two neighbouring |differences|, or the largest of them.
        No comparisons give 0.
    """
    size_N = np.abs(difference_N)
    order_N = np.argsort(size_N, kind="stable")
    size_N, label_N, sign_N = size_N[order_N], label_N[order_N], np.sign(difference_N)[order_N]
    # If the k smallest are declared ties, gained[k] is the number of right verdicts among them
    # minus the number that were right before.
    change_N = (label_N == 0).astype(np.int64) - (label_N == sign_N)
    gained = np.concatenate([[0], np.cumsum(change_N)])
    ends = np.concatenate([[True], np.append(size_N[1:] > size_N[:-1], [True])[: len(size_N)]])
    best = int(np.argmax(np.where(ends, gained, np.iinfo(np.int64).min)))
    if best == 0:
        return 0.0
    if best == len(size_N):
        return float(size_N[-1])
    return float((size_N[best - 1] + size_N[best]) / 2)
