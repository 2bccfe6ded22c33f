"""Concepts, rationale, problem: bound, choice of a rationale, majority label, pairs.

Source: PromptCoT 2.0 (arXiv 2509.19894), p(x|c) = sum_z p(x|z,c) p(z|c). Concepts: PromptCoT
1.0. Differs: the bound in print, E_q log p(z,x|c) - KL(q || p(z|c)), counts log p(z|c) twice, so
that its maximiser is not the posterior; `bound` counts it once. Whole answers are compared: the
published filter drops every answer that contains "no", 'none' and 'node' too. Letters: Z
rationales, S samples.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.lab.recipes.promptcot.settings import PartScore


def bound(
    share_Z: NDArray[np.float64],
    log_q_Z: NDArray[np.float64],
    log_prior_Z: NDArray[np.float64],
    log_likelihood_Z: NDArray[np.float64],
) -> float:
    """Lower bound of log p(x|c): E_q log p(x|z,c) - KL(q || p(z|c)); equal at the posterior.

    Args:
        share_Z: q itself, or how often every rationale was drawn from q, divided by all draws.
        log_q_Z: log q(z|c,x).
        log_prior_Z: log p(z|c).
        log_likelihood_Z: log p(x|z,c).
    """
    return float(np.sum(share_Z * (log_likelihood_Z + log_prior_Z - log_q_Z)))


def tighter_bound(
    log_q_S: NDArray[np.float64],
    log_prior_S: NDArray[np.float64],
    log_likelihood_S: NDArray[np.float64],
    samples: int,
) -> float:
    """Bound log p(x|c) by the log of mean p(x,z|c) / q(z) (IWAE, arXiv 1509.00519).

    Between `bound` and log p(x|c), in expectation; log p(x|c) with infinitely many samples.

    Args:
        log_q_S: of samples of q that ended.
        log_prior_S: as in `bound`.
        log_likelihood_S: as in `bound`.
        samples: those that did not end included, which have weight 0.
    """
    log_weights_S = log_likelihood_S + log_prior_S - log_q_S
    return float(np.logaddexp.reduce(log_weights_S)) - math.log(samples)


def rationale_reward(
    rationale_logprobs: Sequence[float], problem_logprobs: Sequence[float], part_score: PartScore
) -> float:
    """R = log p(x|z,c) + log p(z|c), each summed or averaged over its tokens."""
    parts = (rationale_logprobs, problem_logprobs)
    if part_score is PartScore.SUM:
        return float(sum(math.fsum(part) for part in parts))
    return float(sum(math.fsum(part) / len(part) for part in parts))


def choose_rationale(
    rewards: Sequence[float], lengths: Sequence[int], min_tokens: int
) -> int | None:
    """Return the rationale with the largest reward: hard EM, so q has no entropy term.

    A shorter one than `min_tokens` is never chosen, because an empty rationale has the largest sum;
    None if all are. Ties go to the earlier one.
    """
    allowed = [place for place, length in enumerate(lengths) if length >= min_tokens]
    return max(allowed, key=lambda place: (rewards[place], -place), default=None)


def concept_probabilities(scores: Sequence[float], temperature: float) -> NDArray[np.float64]:
    """Softmax by which the next concept is drawn (PromptCoT 1.0: temperature 0.2).

    Args:
        scores: co-occurrence plus cosine with the concepts so far.
        temperature: above 0.
    """
    scaled = np.asarray(scores, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


@dataclass(frozen=True, slots=True)
class Majority:
    """The most frequent answer of a problem's samples."""

    answer: str | None
    """None without an answer."""
    votes: int
    tied: bool
    """Another answer has as many votes."""
    of: int
    """Samples, those without an answer included."""


def majority(answers: Sequence[str | None]) -> Majority:
    """Count whole answers; of several with the most votes, the first that was given.

    Args:
        answers: of every sample; None where there is none.
    """
    counts = Counter(answer for answer in answers if answer is not None).most_common(2)
    if not counts:
        return Majority(None, 0, tied=False, of=len(answers))
    (answer, votes), *others = counts
    return Majority(answer, votes, tied=bool(others) and others[0][1] == votes, of=len(answers))


def num_pairs(solved: int, samples: int) -> int:
    """Pairs of a right and a wrong answer, of which each is used once."""
    return min(solved, samples - solved)
