"""Which responses of an agent become inputs of the next one, and when a solution is accepted.

Source: MarsRL (arXiv 2511.11373), adaptive sampling: the verifier prefers wrong solutions, the
corrector takes reports of an error, correct ones first; the paper compares it with balanced and
random choice. Acceptance at inference as in its released code. Differs: ties go to the smaller
index (the paper does not say), and a response without a verdict is only taken at random.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest

from tasks.lab.recipes.mars.settings import ResponseChoice

ACCEPTS = 4
"""Acceptances in a row after which a solution is returned."""


def choose(
    right: Sequence[bool | None], *, count: int, choice: ResponseChoice, first: bool, key: str
) -> list[int]:
    """Choose responses by whether they were right, in order of preference.

    Args:
        right: of every response; None without a verdict.
        count: responses wanted; fewer are returned if there are no more.
        choice: how.
        first: the kind that adaptive choice prefers, True for right ones.
        key: of the group, for what is left to chance.
    """
    if choice is ResponseChoice.RANDOM:
        return sorted(range(len(right)), key=lambda index: _draw(key, index))[:count]
    preferred = [index for index, kind in enumerate(right) if kind is first]
    others = [index for index, kind in enumerate(right) if kind is (not first)]
    if choice is ResponseChoice.ADAPTIVE:
        return [*preferred, *others][:count]
    # A single place goes to either kind in turn, by chance.
    sides = (preferred, others) if _draw(key, -1)[0] % 2 else (others, preferred)
    mixed = [index for index in chain.from_iterable(zip_longest(*sides)) if index is not None]
    return sorted(mixed[:count])


def choose_solutions(
    right: Sequence[bool | None], count: int, choice: ResponseChoice, key: str
) -> list[int]:
    """Choose solutions for the verifier, wrong ones first.

    Balanced choice takes none where all are alike: once the solver is mostly right, a verifier
    would be paid for accepting everything.
    """
    if choice is ResponseChoice.BALANCED and not {True, False} <= set(right):
        return []
    return choose(right, count=count, choice=choice, first=False, key=key)


def choose_reports(
    says_error: Sequence[bool],
    right: Sequence[bool | None],
    count: int,
    choice: ResponseChoice,
    key: str,
) -> list[int]:
    """Choose reports of an error for the corrector, correct ones first; none if there is none."""
    reports = [index for index, error in enumerate(says_error) if error]
    kinds = [right[index] for index in reports]
    places = choose(kinds, count=count, choice=choice, first=True, key=key)
    return [reports[place] for place in places]


def accepted_at(accepts: Sequence[bool]) -> int:
    """Return the number of the verifier's call that accepts a solution; 0 for none of them.

    Args:
        accepts: of every call, in order; False for a report of an error and for no verdict.
    """
    in_a_row = 0
    for call, accepted in enumerate(accepts, start=1):
        in_a_row = in_a_row + 1 if accepted else 0
        if in_a_row == ACCEPTS:
            return call
    return 0


def most_accepted(solutions: Sequence[str], accepted: Sequence[str]) -> str:
    """Return the solution that was accepted most often, of equal ones the earliest.

    Args:
        solutions: in order; the first is the solver's.
        accepted: the solution of every acceptance.
    """
    counts = Counter(accepted)
    return max(solutions, key=lambda solution: counts[solution])


def _draw(key: str, index: int) -> bytes:
    return hashlib.sha256(f"{key}/{index}".encode()).digest()
