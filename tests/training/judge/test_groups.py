import numpy as np
import pytest

from tasks.algorithms.preferences import advantage_inversion
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.inversion import judge_rewards, ranked_groups, share_of_ordered_ties
from tasks.training.judge.measures import Verdicts
from tasks.training.judge.pairs import ComparisonPair

A, B, TIE = Label.A, Label.B, Label.TIE


def pairs_of(*compared):
    return [
        ComparisonPair(id=str(place), task="t", answer_a=a, answer_b=b, label=label, annotators=())
        for place, (a, b, label) in enumerate(compared)
    ]


CHAIN = pairs_of(("x", "y", A), ("z", "y", B), ("x", "z", A))
"""x over y over z; one pair stands the other way round."""


def test_the_truth_of_an_answer_is_its_share_of_wins():
    (group,) = ranked_groups(CHAIN)

    assert ("x", "y", "z") == group.answers
    assert [1.0, 0.5, 0.0] == group.quality_G.tolist()


def test_verdicts_that_are_the_labels_give_the_truth():
    (group,) = ranked_groups(CHAIN)
    rewards_G = judge_rewards(group, [Verdicts(pair.label, pair.label) for pair in CHAIN])

    assert group.quality_G.tolist() == rewards_G.tolist()
    assert 0 == advantage_inversion(group.quality_G, rewards_G).flipped


def test_turned_verdicts_turn_the_rewards():
    (group,) = ranked_groups(CHAIN)
    rewards_G = judge_rewards(group, [Verdicts(B, B), Verdicts(A, A), Verdicts(B, B)])
    found = advantage_inversion(group.quality_G, rewards_G)

    assert [0.0, 0.5, 1.0] == rewards_G.tolist()
    # y is at the mean in truth, so two answers have a direction and both are on the wrong side.
    assert (2, 2, 3, 3) == (found.flipped, found.answers, found.discordant, found.pairs)


def test_orders_that_disagree_are_worth_a_tie():
    (group,) = ranked_groups(CHAIN)

    rewards_G = judge_rewards(group, [Verdicts(A, B)] * 3)

    assert [0.5, 0.5, 0.5] == rewards_G.tolist()


def test_an_answer_the_judge_says_nothing_about_has_no_reward():
    (group,) = ranked_groups(CHAIN)
    silent = Verdicts(A, None)

    rewards_G = judge_rewards(group, [silent, Verdicts(B, B), silent])

    assert [True, False, False] == np.isnan(rewards_G).tolist()


@pytest.mark.parametrize(
    "compared",
    [
        (("x", "y", A), ("y", "z", A), ("z", "x", A)),
        (("x", "y", TIE), ("y", "z", TIE), ("x", "z", A)),
        (("x", "y", TIE), ("y", "z", TIE), ("x", "z", TIE)),
        (("x", "y", A), ("y", "z", A)),
        (("x", "y", A),),
    ],
    ids=["circle", "ties that do not carry over", "all equal", "a pair is missing", "two answers"],
)
def test_labels_that_rank_nothing_make_no_group(compared):
    assert [] == ranked_groups(pairs_of(*compared))


def test_the_largest_ranked_part_of_a_task_is_the_group():
    circle = (("w", "x", A), ("y", "w", A), ("w", "z", A))
    (group,) = ranked_groups([*CHAIN, *pairs_of(*circle)])

    # w over x over y over w: three of four answers remain.
    assert 3 == len(group.answers)


def test_only_pairs_that_are_equal_in_truth_can_be_given_an_order_wrongly():
    quality_G = np.array([1.0, 0.5, 0.5, 0.0, 0.0])

    # Of the two ties one is kept and one gets an order.
    assert 0.5 == share_of_ordered_ties(quality_G, np.array([0.9, 0.4, 0.4, 0.2, 0.1]))
    assert 0.0 == share_of_ordered_ties(quality_G, quality_G)
    assert share_of_ordered_ties(np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.0, 0.0])) is None
