"""Changes of the training comparisons of a judge: another share of ties, noise in the labels.

The held-out comparisons are the same with every change: without their ties the ranked groups, in
which advantages are compared, would not be whole. A share of ties is made by leaving out pairs,
and all shares have the same number of pairs, so that a share is not a difference of their
number.

A changed label would contradict the analyses of its pair, so the conditions with label noise
teach labels alone, as files of people do. A noise of 0 is their baseline.
"""

import random
from collections.abc import Sequence

from data_schemas.study import TrainingPairs
from tasks.errors import DataError
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.pairs import ComparisonPair

TIE_SHARES = (0.1, 0.33, 0.6)
"""All shares have as many pairs as each of these can be made with."""


def changed_pairs(
    pairs: Sequence[ComparisonPair], changes: TrainingPairs, seed: int
) -> list[ComparisonPair]:
    """Return the training pairs after the changes, in their order."""
    changed = list(pairs)
    if changes.tie_share is not None:
        changed = with_tie_share(changed, changes.tie_share, common_size(changed), seed)
    if changes.noise is not None:
        changed = with_label_noise(
            [_without_analyses(pair) for pair in changed], changes.noise, seed
        )
    return changed


def common_size(pairs: Sequence[ComparisonPair]) -> int:
    """Return the largest number of pairs with which every share can be made."""
    ties = sum(pair.label is Label.TIE for pair in pairs)
    others = len(pairs) - ties
    return min(int(min(ties / share, others / (1 - share))) for share in TIE_SHARES)


def with_tie_share(
    pairs: Sequence[ComparisonPair], share: float, size: int, seed: int
) -> list[ComparisonPair]:
    """Leave out ties and other pairs until `size` pairs remain, this share of them ties.

    Of two shares, the pairs of a kind that remain in the smaller one remain in the larger one.

    Raises:
        DataError: there are too few pairs of a kind.
    """
    num_ties = round(share * size)
    selection: set[int] = set()
    for is_tie, count in ((True, num_ties), (False, size - num_ties)):
        rows = [row for row, pair in enumerate(pairs) if (pair.label is Label.TIE) is is_tie]
        if not 0 < count <= len(rows):
            kind = "ties" if is_tie else "pairs with a preferred answer"
            raise DataError(
                f"{share:.0%} ties among {size} training pairs need {count} {kind}; there are "
                f"{len(rows)}. Add comparisons."
            )
        random.Random(f"{seed}/{is_tie}").shuffle(rows)
        selection |= set(rows[:count])
    return [pair for row, pair in enumerate(pairs) if row in selection]


def with_label_noise(
    pairs: Sequence[ComparisonPair], share: float, seed: int
) -> list[ComparisonPair]:
    """Replace this share of the labels by one of the two others, at random.

    Of two shares, the larger one replaces the labels of the smaller one, by the same others.
    """
    draw = random.Random(seed)
    others = [draw.choice([label for label in Label if label is not pair.label]) for pair in pairs]
    replaced = set(draw.sample(range(len(pairs)), len(pairs))[: round(share * len(pairs))])
    return [
        pair.model_copy(update={"label": other}) if row in replaced else pair
        for row, (pair, other) in enumerate(zip(pairs, others, strict=True))
    ]


def _without_analyses(pair: ComparisonPair) -> ComparisonPair:
    return pair.model_copy(update={"requirements": "", "analysis_a": "", "analysis_b": ""})
