import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.bradley_terry import preference_loss, tie_margin, verdicts

SCORES = st.lists(st.tuples(*[st.integers(-40, 40)] * 2), min_size=1, max_size=12)


def test_equal_scores_cost_ln_two_and_a_lead_of_two_is_worked_by_hand():
    assert math.log(2) == pytest.approx(float(preference_loss(torch.zeros(3), torch.zeros(3))))
    # ln(1 + e^-2)
    loss = preference_loss(torch.tensor([1.5]), torch.tensor([-0.5]))
    assert 0.126928 == pytest.approx(float(loss), abs=1e-6)


def test_the_gradient_is_the_chance_of_the_other_outcome():
    winner_N = torch.tensor([0.3, -1.0], dtype=torch.float64, requires_grad=True)
    loser_N = torch.tensor([0.1, 2.0], dtype=torch.float64, requires_grad=True)

    preference_loss(winner_N, loser_N).backward()

    # 1 - sigmoid(0.2) = 0.450166, 1 - sigmoid(-3) = 0.952574; a mean of two.
    expected = [-0.450166 / 2, -0.952574 / 2]
    assert expected == pytest.approx(winner_N.grad.tolist(), abs=1e-6)
    assert [-value for value in expected] == pytest.approx(loser_N.grad.tolist(), abs=1e-6)


@given(SCORES, st.integers(-1000, 1000))
def test_adding_a_constant_to_all_scores_changes_nothing(scores, constant):
    winner_N, loser_N = torch.tensor(scores, dtype=torch.float64).T

    before, after = (preference_loss(winner_N + shift, loser_N + shift) for shift in (0, constant))

    assert torch.equal(before, after)


def test_a_verdict_within_the_margin_is_a_tie():
    assert [1, 0, 0, -1] == verdicts(np.array([0.6, 0.5, -0.1, -2.0]), 0.5).tolist()
    assert [1, 0, -1] == verdicts(np.array([1e-9, 0.0, -1e-9]), 0.0).tolist()


def test_the_margin_lies_between_the_ties_and_the_rest():
    # |0.1| and |-0.3| are ties, 1.0 and -2.0 are right: half way between 0.3 and 1.0.
    difference_N = np.array([1.0, 0.1, -2.0, -0.3])

    assert 0.65 == pytest.approx(tie_margin(difference_N, np.array([1, 0, -1, 0])))
    assert 0.0 == tie_margin(difference_N, np.array([1, 1, -1, -1]))
    assert 2.0 == tie_margin(difference_N, np.zeros(4))
    assert 0.0 == tie_margin(np.empty(0), np.empty(0))


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.sampled_from([-1, 0, 1])), min_size=1, max_size=15)
)
def test_no_margin_is_right_more_often_than_the_one_found(rows):
    difference_N, label_N = (np.array(column) for column in zip(*rows, strict=True))

    def right(margin):
        return int((verdicts(difference_N.astype(float), margin) == label_N).sum())

    found = right(tie_margin(difference_N.astype(float), label_N))
    assert max(right(margin) for margin in np.arange(0.0, 5.6, 0.5)) == found
