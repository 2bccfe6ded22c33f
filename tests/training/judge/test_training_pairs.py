"""Training comparisons with another share of ties, or with wrong labels."""

from collections import Counter

import pytest

from data_schemas.study import TrainingPairs
from tasks.errors import DataError
from tasks.gym.judging.comparison_prompt import Label, parse_label
from tasks.training.judge.changes import (
    TIE_SHARES,
    changed_pairs,
    common_size,
    with_label_noise,
    with_tie_share,
)
from tasks.training.judge.collection import both_orders
from tasks.training.judge.pairs import ComparisonPair

LABELS = (Label.A, Label.B, Label.TIE)
PAIRS = [
    ComparisonPair(
        id=f"p/{row}",
        task=f"task {row}",
        answer_a="x",
        answer_b="y",
        label=LABELS[row % 3],
        annotators=(),
        requirements="a title",
        analysis_a="has one",
        analysis_b="has none",
    )
    for row in range(300)
]


def ties_of(pairs) -> int:
    return sum(pair.label is Label.TIE for pair in pairs)


def places_of_changes(changed) -> dict[int, Label]:
    both = enumerate(zip(PAIRS, changed, strict=True))
    return {row: now.label for row, (before, now) in both if before.label is not now.label}


@pytest.mark.parametrize("share", [0.1, 0.33, 0.6])
def test_pairs_are_left_out_until_the_share_of_ties_is_right(share):
    kept = with_tie_share(PAIRS, share, 150, seed=0)

    assert (150, round(150 * share)) == (len(kept), ties_of(kept))
    assert kept == [pair for pair in PAIRS if pair in kept]
    assert kept == with_tie_share(PAIRS, share, 150, seed=0)
    assert kept != with_tie_share(PAIRS, share, 150, seed=1)


def test_a_larger_share_has_the_ties_of_a_smaller_one():
    few, many = (with_tie_share(PAIRS, share, 150, seed=0) for share in (0.1, 0.6))

    assert {p.id for p in few if p.label is Label.TIE} < {p.id for p in many}
    assert {p.id for p in many if p.label is not Label.TIE} < {p.id for p in few}


def test_every_share_has_the_same_number_of_pairs_and_no_larger_one_is_possible():
    size = common_size(PAIRS)
    changes = [TrainingPairs(tie_share=share) for share in TIE_SHARES]

    assert 100 / 0.6 - 1 < size <= 100 / 0.6
    assert {size} == {len(changed_pairs(PAIRS, one, 0)) for one in changes}


def test_too_few_ties_are_an_error_that_says_how_many_are_needed():
    with pytest.raises(DataError, match=r"60% ties among 200 training pairs need 120 ties; .* 100"):
        with_tie_share(PAIRS, 0.6, 200, seed=0)
    with pytest.raises(DataError, match="need 0 ties"):
        with_tie_share(PAIRS, 0.0, 100, seed=0)


def test_comparisons_without_ties_have_no_shares():
    without = [pair for pair in PAIRS if pair.label is not Label.TIE]

    with pytest.raises(DataError, match="Add comparisons"):
        changed_pairs(without, TrainingPairs(tie_share=0.1), 0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_a_share_of_the_labels_becomes_another_label_and_nothing_else_changes(share):
    noisy = with_label_noise(PAIRS, share, seed=0)

    assert round(300 * share) == len(places_of_changes(noisy))
    assert noisy == with_label_noise(PAIRS, share, seed=0)
    assert PAIRS == [
        now.model_copy(update={"label": pair.label}) for pair, now in zip(PAIRS, noisy, strict=True)
    ]


def test_both_other_labels_take_the_place_of_each():
    noisy = with_label_noise(PAIRS, 1.0, seed=0)

    found = Counter((p.label, n.label) for p, n in zip(PAIRS, noisy, strict=True))
    assert {(a, b) for a in LABELS for b in LABELS if a is not b} == found.keys()


def test_more_noise_keeps_the_wrong_labels_of_less():
    little, much = (places_of_changes(with_label_noise(PAIRS, s, 0)) for s in (0.1, 0.3))

    assert little.items() < much.items()


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_no_analysis_contradicts_a_label_because_none_is_taught(noise):
    changed = changed_pairs(PAIRS, TrainingPairs(noise=noise), 0)

    rows = [row for pair in changed for row in both_orders(pair)]
    assert not any("has one" in row.response or "better" in row.response for row in rows)
    assert [pair.label for pair in changed] == [parse_label(row.response) for row in rows[::2]]


def test_without_changes_the_pairs_are_those_that_were_collected():
    assert PAIRS == changed_pairs(PAIRS, TrainingPairs(), 0)
