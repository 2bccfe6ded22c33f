"""Groups of answers with a human ranking, and how often a reward inverts it.

A group is the largest set of answers to one task in which every pair was compared and the labels
are consistent with one ranking (with ties). The true quality of an answer is its share of wins
in these labels, so the advantage of RL, reward minus the mean of the group, has a known sign
(CompassMax). The reward of the judge is the round robin of its verdicts in both orders; the
reward of the scalar head is its score.

The true quality is a round robin too, because people compared answers and did not score them.
The mean of a group therefore has the scale of the judge rather than that of the scalar head; the
share of pairs in the wrong order, which is reported in addition, does not depend on the scale.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tasks.algorithms.preferences import round_robin_rewards
from tasks.gym.judging.both_orders import WORTH
from tasks.training.judge.measures import Verdicts
from tasks.training.judge.pairs import ComparisonPair, by_task

MIN_ANSWERS = 3
"""With two answers, an inversion is the same as a wrong verdict."""
MAX_ANSWERS = 8
"""Number of answers per task that are considered, in file order: all subsets are searched."""

TOLERANCE = 1e-9
"""Largest difference of equal rewards, which is due to rounding."""


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers to one task and their true quality."""

    task: str
    answers: tuple[str, ...]
    quality_G: NDArray[np.float64]
    """Share of wins in [0, 1]; not all equal."""
    rows: Mapping[tuple[int, int], tuple[int, bool]]
    """For i < j: index of the pair that compares i with j, and whether i is its first answer."""


def ranked_groups(pairs: Sequence[ComparisonPair]) -> list[AnswerGroup]:
    """Find at most one group per task, in the order of the tasks."""
    groups: list[AnswerGroup] = []
    for rows in by_task(pairs).values():
        group = next(_groups_of(pairs, rows), None)
        if group is not None:
            groups.append(group)
    return groups


def judge_rewards(group: AnswerGroup, verdicts: Sequence[Verdicts]) -> NDArray[np.float64]:
    """Return the round robin of the verdicts in both orders [G]; NaN without enough verdicts."""
    size = len(group.answers)
    wins_GG = np.full((size, size), np.nan)
    for (i, j), (row, is_first) in group.rows.items():
        worth = _first_answer_worth(verdicts[row])
        wins_GG[i, j] = worth if is_first else 1.0 - worth
        wins_GG[j, i] = 1.0 - wins_GG[i, j]
    return round_robin_rewards(wins_GG)


def share_of_ordered_ties(
    quality_G: NDArray[np.float64], rewards_G: NDArray[np.float64]
) -> float | None:
    """Return the share of truly tied pairs whose rewards differ; None without such pairs.

    Every difference counts, because in a group of equal answers the division by the standard
    deviation amplifies it. Scalar scores of different texts are almost never equal, so the share
    of a scalar reward is close to 1.
    """
    tied = [
        (i, j) for i, j in combinations(range(len(quality_G)), 2) if quality_G[i] == quality_G[j]
    ]
    if not tied:
        return None
    return sum(abs(rewards_G[i] - rewards_G[j]) > TOLERANCE for i, j in tied) / len(tied)


def _first_answer_worth(verdicts: Verdicts) -> float:
    """Return the reward of the pair's first answer; NaN unless both orders have a verdict."""
    if verdicts.original is None or verdicts.swapped is None:
        return float("nan")
    return (WORTH[verdicts.original] + WORTH[verdicts.swapped]) / 2


def _groups_of(pairs: Sequence[ComparisonPair], rows: Sequence[int]) -> Iterator[AnswerGroup]:
    """Yield the groups of a task, larger ones first."""
    compared: dict[tuple[str, str], int] = {}
    for row in rows:
        pair = pairs[row]
        if (pair.answer_b, pair.answer_a) not in compared:
            compared.setdefault((pair.answer_a, pair.answer_b), row)
    answers = list(dict.fromkeys(answer for both in compared for answer in both))[:MAX_ANSWERS]
    for size in range(len(answers), MIN_ANSWERS - 1, -1):
        for members in combinations(answers, size):
            group = _group(pairs, members, compared)
            if group is not None:
                yield group


def _group(
    pairs: Sequence[ComparisonPair],
    answers: tuple[str, ...],
    compared: Mapping[tuple[str, str], int],
) -> AnswerGroup | None:
    """Build a group of these answers; None if a pair is missing or the labels have no ranking."""
    rows: dict[tuple[int, int], tuple[int, bool]] = {}
    wins_GG = np.zeros((len(answers), len(answers)))
    for i, j in combinations(range(len(answers)), 2):
        first, second = answers[i], answers[j]
        row = compared.get((first, second), compared.get((second, first)))
        if row is None:
            return None
        is_first = pairs[row].answer_a == first
        rows[i, j] = (row, is_first)
        worth = WORTH[pairs[row].label]
        wins_GG[i, j] = worth if is_first else 1.0 - worth
        wins_GG[j, i] = 1.0 - wins_GG[i, j]
    quality_G = round_robin_rewards(wins_GG)
    fits = np.sign(quality_G[:, None] - quality_G) == np.sign(wins_GG - wins_GG.T)
    if np.ptp(quality_G) == 0.0 or not fits.all():
        return None
    return AnswerGroup(pairs[next(iter(rows.values()))[0]].task, answers, quality_G, rows)
