"""What labels are worth, against the specification's vector."""

import pytest
import torch

from tasks.algorithms.advantages.grouped import group_advantages
from tasks.gym.judging.both_orders import Pair, both_orders, compare
from tasks.gym.judging.comparison_prompt import Label, completion
from tasks.gym.judging.scripted import ScriptedJudge, preferring

ORDERS = [
    (Label.A, Label.B),
    (Label.A, Label.A),
    (Label.TIE, Label.TIE),
    (Label.B, Label.A),
    (Label.A, Label.TIE),
]


def test_the_vector_of_rewards_and_advantages_holds():
    rewards = [both_orders(*labels) for labels in ORDERS]
    rewards_PG = torch.tensor([rewards], dtype=torch.float64)
    valid_PG = torch.ones_like(rewards_PG, dtype=torch.bool)
    advantages_PG = group_advantages(
        rewards_PG, torch.zeros_like(rewards_PG), valid_PG, std_floor=0.0
    )

    assert [1.0, 0.5, 0.5, 0.0, 0.75] == rewards
    expected = [1.35679696, -0.15075522, -0.15075522, -1.65830740, 0.60302087]
    assert expected == pytest.approx(advantages_PG[0].tolist(), abs=1e-5)


@pytest.mark.parametrize("as_a", list(Label))
@pytest.mark.parametrize("as_b", list(Label))
def test_what_one_answer_gains_the_other_loses(as_a, as_b):
    assert 1.0 == both_orders(as_a, as_b) + both_orders(as_b, as_a)


def test_verdicts_come_in_the_order_of_the_pairs_and_equal_texts_cost_nothing():
    judge = ScriptedJudge(preferring(len))
    pairs = [Pair("t", "a", "bb"), Pair("t", "a", "a"), Pair("t", "ccc", "a")]

    assert [0.0, 0.5, 1.0] == [verdict.score for verdict in compare(judge, pairs)]
    assert 4 == judge.calls.asked


def test_no_pairs_are_no_question():
    judge = ScriptedJudge(lambda _: completion(Label.A))

    assert [] == compare(judge, [])
    assert 0 == judge.calls.asked
