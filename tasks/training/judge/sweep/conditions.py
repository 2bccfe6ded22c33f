"""Conditions of the sweep: what is changed in the training comparisons, one thing at a time.

The held-out comparisons are the same in every condition: without their ties the ranked groups,
in which advantages are compared, would not be whole. A share of ties is made by leaving out pairs,
and all shares have the same number of pairs, so that a share is not a difference of their number.

A changed label would contradict the analyses of its pair, so the conditions with label noise teach
labels alone, as files of people do. `labels` is their baseline.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.errors import DataError, SettingsError
from tasks.gym.judging.form import Label
from tasks.training.judge.pairs import ComparisonPair


@dataclass(frozen=True, slots=True)
class Condition:
    """One line of the table."""

    name: str
    meaning: str
    tie_share: float | None = None
    """Of the training pairs; None as they were collected."""
    noise: float | None = None
    """Share of the training labels that are replaced; None teaches analyses and true labels."""


CONDITIONS = (
    Condition("collected", "all comparisons"),
    Condition("ties_10", "10 % of the training pairs are ties", tie_share=0.1),
    Condition("ties_33", "33 %, as many pairs", tie_share=0.33),
    Condition("ties_60", "60 %, as many pairs", tie_share=0.6),
    Condition("labels", "all comparisons, without analyses", noise=0.0),
    Condition("noise_10", "the same, 10 % of the training labels replaced", noise=0.1),
    Condition("noise_30", "the same, 30 % of the training labels replaced", noise=0.3),
)
TIE_SHARES = tuple(one.tie_share for one in CONDITIONS if one.tie_share is not None)


def select_conditions(names: str) -> tuple[Condition, ...]:
    """Select conditions by comma-separated names; all of them for ''.

    Raises:
        SettingsError: there is no such condition.
    """
    by_name = {one.name: one for one in CONDITIONS}
    wanted = {name.strip() for name in names.split(",") if name.strip()} or by_name.keys()
    unknown = sorted(wanted - by_name.keys())
    if unknown:
        raise SettingsError(
            f"there is no condition {unknown[0]!r}; choose from {', '.join(by_name)}"
        )
    return tuple(one for name, one in by_name.items() if name in wanted)


def training_pairs(
    pairs: Sequence[ComparisonPair], condition: str, seed: int
) -> list[ComparisonPair]:
    """Return the training pairs of a condition, in their order."""
    (chosen,) = select_conditions(condition)
    changed = list(pairs)
    if chosen.tie_share is not None:
        changed = with_tie_share(changed, chosen.tie_share, common_size(changed), seed)
    if chosen.noise is not None:
        changed = with_label_noise(
            [_without_analyses(pair) for pair in changed], chosen.noise, seed
        )
    return changed


def common_size(pairs: Sequence[ComparisonPair]) -> int:
    """Return the largest number of pairs with which every share of the sweep can be made."""
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
    wanted = round(share * size)
    kept: set[int] = set()
    for is_tie, count in ((True, wanted), (False, size - wanted)):
        rows = [row for row, pair in enumerate(pairs) if (pair.label is Label.TIE) is is_tie]
        if not 0 < count <= len(rows):
            kind = "ties" if is_tie else "pairs with a preferred answer"
            raise DataError(
                f"{share:.0%} ties among {size} training pairs need {count} {kind}; there are "
                f"{len(rows)}. Add comparisons."
            )
        random.Random(f"{seed}/{is_tie}").shuffle(rows)
        kept |= set(rows[:count])
    return [pair for row, pair in enumerate(pairs) if row in kept]


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
