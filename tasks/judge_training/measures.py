"""How good verdicts on human comparisons are: accuracy, tie recall, consistency, agreement.

The first four are what CompassMax A.7 reports. Every pair is judged in both orders; a verdict is
written from the view of the order in the file, so that verdicts that agree are equal. No reading
counts as a wrong verdict and stands in a column of its own.
Source of kappa: Cohen 1960: (observed - expected agreement) / (1 - expected agreement).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from tasks.rewards.judging.form import Label

NO_LABEL = "none"
COLUMNS = (*map(str, Label), NO_LABEL)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on one pair; None if unreadable."""

    given: Label | None
    """With the answers in the order of the file."""
    swapped: Label | None
    """With the answers in the other order, turned back."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Between two who label the same pairs."""

    raw: float
    """Share of equal labels."""
    kappa: float
    """1: always equal, 0: as equal as chance makes them."""


def hits(verdicts: Verdicts, label: Label) -> float:
    """Share of the two orders in which the verdict is the label: 0, 0.5 or 1."""
    return ((verdicts.given is label) + (verdicts.swapped is label)) / 2


def is_consistent(verdicts: Verdicts) -> bool:
    """True if both orders have a verdict, and the same."""
    return verdicts.given is not None and verdicts.given is verdicts.swapped


def confusion(verdicts: Sequence[Verdicts], labels: Sequence[Label]) -> dict[str, dict[str, int]]:
    """Count the verdicts in both orders per human label."""
    counts = {str(label): dict.fromkeys(COLUMNS, 0) for label in Label}
    for said, label in zip(verdicts, labels, strict=True):
        for verdict in (said.given, said.swapped):
            counts[label.value][NO_LABEL if verdict is None else verdict.value] += 1
    return counts


def agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Compare two labellings of the same items; kappa is 0 if chance alone explains everything.

    Both saying one and the same label throughout is such a case. No items give zeros.
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
    said = [verdict for pair in verdicts for verdict in (pair.given, pair.swapped)]
    return agreement(said, [label for label in labels for _ in range(2)])


def agreement_with_annotators(
    verdicts: Sequence[Verdicts], votes: Sequence[Sequence[Label]]
) -> Agreement | None:
    """Compare the verdicts with every annotator in turn; the mean over them.

    Args:
        votes: per pair; pairs without single votes are left out.

    Returns:
        None if no pair has single votes.
    """
    voted = [(said, own) for said, own in zip(verdicts, votes, strict=True) if own]
    each = [
        agreement_with_label([said for said, _ in voted], list(column))
        for column in zip(*(own for _, own in voted), strict=False)
    ]
    return _mean(each)


def agreement_among_annotators(votes: Sequence[Sequence[Label]]) -> Agreement | None:
    """Compare every two annotators; the mean over pairs of them. None without two."""
    columns = list(zip(*(own for own in votes if own), strict=False))
    return _mean([agreement(first, second) for first, second in combinations(columns, 2)])


def _mean(each: Sequence[Agreement]) -> Agreement | None:
    if not each:
        return None
    return Agreement(mean(one.raw for one in each), mean(one.kappa for one in each))
