"""Quality of verdicts on human comparisons: accuracy, tie recall, consistency, agreement.

CompassMax reports these four. Every pair is judged in both orders; verdicts are converted to
the order in the file, so that verdicts that agree are equal. An unreadable reply counts as a
wrong verdict and has its own column. Source of kappa: Cohen 1960: (observed - expected
agreement) / (1 - expected agreement).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from tasks.gym.judging.comparison_prompt import Label

NO_LABEL = "none"
COLUMNS = (*map(str, Label), NO_LABEL)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on one pair; None if unreadable."""

    original: Label | None
    """With the answers in the order of the file."""
    swapped: Label | None
    """With the answers in the other order, converted to the order of the file."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two labellers of the same pairs."""

    raw: float
    """Share of equal labels."""
    kappa: float
    """1: always equal, 0: as often equal as by chance."""


def share_correct(verdicts: Verdicts, label: Label) -> float:
    """Return the share of the two orders in which the verdict is the label: 0, 0.5 or 1."""
    return ((verdicts.original is label) + (verdicts.swapped is label)) / 2


def is_consistent(verdicts: Verdicts) -> bool:
    """Return True if both orders have the same verdict."""
    return verdicts.original is not None and verdicts.original is verdicts.swapped


def confusion(verdicts: Sequence[Verdicts], labels: Sequence[Label]) -> dict[str, dict[str, int]]:
    """Count the verdicts in both orders per human label."""
    counts = {str(label): dict.fromkeys(COLUMNS, 0) for label in Label}
    for pair, label in zip(verdicts, labels, strict=True):
        for verdict in (pair.original, pair.swapped):
            counts[label.value][NO_LABEL if verdict is None else verdict.value] += 1
    return counts


def agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Compare two labellings of the same items.

    Kappa is 0 if both always use the same single label, where the expected agreement is 1. Without
    items both values are 0.
    """
    num = len(first)
    if num == 0:
        return Agreement(0.0, 0.0)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / num
    ours, theirs = Counter(first), Counter(second)
    expected = sum(ours[label] * theirs[label] for label in ours) / num**2
    kappa = (observed - expected) / (1 - expected) if expected < 1 else 0.0
    return Agreement(observed, kappa)


def agreement_with_label(verdicts: Sequence[Verdicts], labels: Sequence[Label]) -> Agreement:
    """Compare the verdicts of both orders with the labels."""
    both = [verdict for pair in verdicts for verdict in (pair.original, pair.swapped)]
    return agreement(both, [label for label in labels for _ in range(2)])


def agreement_with_annotators(
    verdicts: Sequence[Verdicts], votes: Sequence[Sequence[Label]]
) -> Agreement | None:
    """Compare the verdicts with every annotator and return the mean over annotators.

    Args:
        votes: per pair; pairs without individual votes are left out.

    Returns:
        None if no pair has individual votes.
    """
    with_votes = [(pair, own) for pair, own in zip(verdicts, votes, strict=True) if own]
    each = [
        agreement_with_label([pair for pair, _ in with_votes], list(column))
        for column in zip(*(own for _, own in with_votes), strict=False)
    ]
    return _mean(each)


def agreement_among_annotators(votes: Sequence[Sequence[Label]]) -> Agreement | None:
    """Compare every two annotators and return the mean over pairs; None with fewer than two."""
    columns = list(zip(*(own for own in votes if own), strict=False))
    return _mean([agreement(first, second) for first, second in combinations(columns, 2)])


def _mean(each: Sequence[Agreement]) -> Agreement | None:
    if not each:
        return None
    return Agreement(mean(one.raw for one in each), mean(one.kappa for one in each))
