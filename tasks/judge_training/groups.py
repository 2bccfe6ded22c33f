"""Groups of answers whose true order people have given, and how often a reward inverts it.

A group is the largest set of answers to one task of which every pair was compared and whose labels
fit one ranking (with ties). The truth of an answer is its share of wins in these labels, so the
advantage of RL, reward minus the group's mean, has a known sign (CompassMax A.7). The reward of
the judge is the round robin of its verdicts in both orders; that of the scalar head is its score.

The truth is a round robin itself, as people gave comparisons and no scores. So the mean that an
answer must be above has the judge's scale rather than the scalar's; the share of pairs in the wrong
order, which is reported beside it, has no scale.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tasks.algorithms.preferences import round_robin_rewards
from tasks.judge_training.measures import Verdicts
from tasks.judge_training.pairs import ComparisonPair, by_task
from tasks.rewards.judging.reward import WORTH

MIN_ANSWERS = 3
"""Of two answers there is no inversion without a wrong verdict."""
MAX_ANSWERS = 8
"""Of one task that are looked at, the first in the file: subsets are tried one by one."""

TOLERANCE = 1e-9
"""Of equal rewards: rounding, not judgement."""


@dataclass(frozen=True, slots=True)
class Group:
    """Answers to one task with their true quality."""

    task: str
    answers: tuple[str, ...]
    quality_G: NDArray[np.float64]
    """Share of wins in [0, 1]; not all equal."""
    rows: Mapping[tuple[int, int], tuple[int, bool]]
    """For i < j: number of the pair that compares i with j, and whether i is its first answer."""


def ranked_groups(pairs: Sequence[ComparisonPair]) -> list[Group]:
    """Find at most one group per task, in the order of the tasks."""
    found: list[Group] = []
    for rows in by_task(pairs).values():
        group = next(_groups_of(pairs, rows), None)
        if group is not None:
            found.append(group)
    return found


def judged_rewards(group: Group, verdicts: Sequence[Verdicts]) -> NDArray[np.float64]:
    """Round robin of the verdicts in both orders [G]; NaN where too few can be read."""
    size = len(group.answers)
    wins_GG = np.full((size, size), np.nan)
    for (i, j), (row, is_first) in group.rows.items():
        worth = _worth(verdicts[row])
        wins_GG[i, j] = worth if is_first else 1.0 - worth
        wins_GG[j, i] = 1.0 - wins_GG[i, j]
    return round_robin_rewards(wins_GG)


def ordered_ties(quality_G: NDArray[np.float64], rewards_G: NDArray[np.float64]) -> float | None:
    """Share of the pairs that are equal in truth to which rewards give an order; None without.

    However little the rewards differ: in a group of equals the standard deviation scales it up.
    Scores of different texts are all but never equal, so a scalar reward is at 1 by its nature.
    """
    tied = [
        (i, j) for i, j in combinations(range(len(quality_G)), 2) if quality_G[i] == quality_G[j]
    ]
    if not tied:
        return None
    return sum(abs(rewards_G[i] - rewards_G[j]) > TOLERANCE for i, j in tied) / len(tied)


def _worth(said: Verdicts) -> float:
    """What the pair's first answer gains; NaN unless both orders can be read."""
    if said.given is None or said.swapped is None:
        return float("nan")
    return (WORTH[said.given] + WORTH[said.swapped]) / 2


def _groups_of(pairs: Sequence[ComparisonPair], rows: Sequence[int]) -> Iterator[Group]:
    """Yield the task's groups, larger ones first."""
    compared: dict[tuple[str, str], int] = {}
    for row in rows:
        pair = pairs[row]
        if (pair.answer_b, pair.answer_a) not in compared:
            compared.setdefault((pair.answer_a, pair.answer_b), row)
    answers = list(dict.fromkeys(answer for both in compared for answer in both))[:MAX_ANSWERS]
    for size in range(len(answers), MIN_ANSWERS - 1, -1):
        for chosen in combinations(answers, size):
            group = _group(pairs, chosen, compared)
            if group is not None:
                yield group


def _group(
    pairs: Sequence[ComparisonPair],
    answers: tuple[str, ...],
    compared: Mapping[tuple[str, str], int],
) -> Group | None:
    """Make a group of these answers; None if a pair is missing or the labels fit no ranking."""
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
    return Group(pairs[next(iter(rows.values()))[0]].task, answers, quality_G, rows)
