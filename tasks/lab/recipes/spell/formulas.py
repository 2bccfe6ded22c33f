"""Rewards, votes and selection of a self-play of questioner, responder and verifier.

Source: SPELL (arXiv 2509.23863) for the rewards and the selection; its code
(Tongyi-Zhiwen/Qwen-Doc) for the advantages per task, the band of agreeing votes and the shares.
Differs: a majority is strict, more than half of all votes, as in the paper; the code takes the most
frequent vote, ties by the first, and one that cannot be read may win. A vote that cannot be read is
an abstention of that vote with reward 0 (ours). A shortfall of one task's questions is made up by
the other tasks of the same step, not carried over to the next one (the paper does not say).
"""

import math
from collections.abc import Hashable, Sequence
from itertools import chain, zip_longest

SIGMA = 0.5 / 3
"""Width of the band around MIDDLE; 0.5/6 and 0.5/2 are worse in the paper's ablation."""
MIDDLE = 0.5
UNGROUNDED = -0.5
BAD_FORMAT = -1.0
GUESSED = 0.1
"""Score without documents from which on a question is ungrounded, as in the code."""
AGREEING = (0.51, 0.99)
"""Share of votes for the majority in which a verifier's group trains, as in the code."""
VERIFIER_SHARE = 0.125
"""Groups of the verifier that train, per group of the responder, as in the code."""
STD_EPSILON = 1e-6
"""As in the code."""


def majority(votes: Sequence[bool | None]) -> bool:
    """Say whether strictly more than half of all votes accept; None is an abstention."""
    return 2 * sum(vote is True for vote in votes) > len(votes)


def vote_rewards(votes: Sequence[bool | None]) -> list[float]:
    """Reward every vote that is the majority's; an abstention gets 0."""
    winner = majority(votes)
    return [float(vote is winner) for vote in votes]


def trains_verifier(votes: Sequence[bool | None], rule: bool) -> bool:
    """Say whether a verifier's group trains: votes differ, and the majority is the rule's score."""
    share = sum(vote_rewards(votes)) / max(1, len(votes))
    return AGREEING[0] <= share <= AGREEING[1] and majority(votes) is rule


def responder_reward(rule: bool, accepted: bool) -> float:
    """Reward an answer that the rule or the verifier's majority accepts.

    It pays whatever a colluding verifier accepts: count the false accepts.
    """
    return float(rule or accepted)


def question_reward(mean: float) -> float:
    """Reward a grounded question by the responder's mean reward, 1 where half of it is earned."""
    if not 0.0 < mean < 1.0:
        return 0.0
    return math.exp(-((mean - MIDDLE) ** 2) / (2.0 * SIGMA**2))


def is_remembered(mean: float) -> bool:
    """Say whether a question enters the memory: solved by some answers, not by all (the paper).

    The code also stores those that all answers solve.
    """
    return 0.0 < mean < 1.0


def standardised(rewards: Sequence[float]) -> list[float]:
    """Centre and divide by the sample standard deviation, as in the code; 0 for a single one."""
    if len(rewards) < 2:
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    variance = sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1)
    return [(reward - mean) / (math.sqrt(variance) + STD_EPSILON) for reward in rewards]


def task_advantages(rewards: Sequence[float], tasks: Sequence[Hashable]) -> list[float]:
    """Standardise the rewards of every task's questions on their own."""
    results = [0.0] * len(rewards)
    for task in dict.fromkeys(tasks):
        places = [place for place, one in enumerate(tasks) if one == task]
        of_task = standardised([rewards[place] for place in places])
        for place, advantage in zip(places, of_task, strict=True):
            results[place] = advantage
    return results


def balanced(tasks: Sequence[Hashable], count: int) -> list[int]:
    """Choose `count` places, the tasks in turn; a task with too few leaves its places to others."""
    by_task: dict[Hashable, list[int]] = {}
    for place, task in enumerate(tasks):
        by_task.setdefault(task, []).append(place)
    turns = chain.from_iterable(zip_longest(*by_task.values()))
    return sorted([place for place in turns if place is not None][:count])


def choose_questions(
    rewards: Sequence[float], tasks: Sequence[Hashable], has_contrast: Sequence[bool]
) -> list[int]:
    """Choose the questions that train: those with contrast, and as many with a reward <= 0."""
    positive = [place for place, one in enumerate(has_contrast) if one]
    negative = [place for place, reward in enumerate(rewards) if reward <= 0.0]
    picks = balanced([tasks[place] for place in negative], len(positive))
    return sorted([*positive, *(negative[place] for place in picks)])


def verifier_quota(responder_groups: int) -> int:
    """Return how many of the verifier's groups train beside the responder's; at least one."""
    return max(1, round(responder_groups * VERIFIER_SHARE))
