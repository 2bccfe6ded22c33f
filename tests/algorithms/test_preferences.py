"""Rewards from comparisons inside a group, against the specification's vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.preferences import (
    Inversion,
    advantage_inversion,
    round_robin_rewards,
)

NONE = np.nan
MATRIX = np.array(
    [[NONE, 1, 0.5, 0.5], [0, NONE, 0, 0.5], [0.5, 1, NONE, 0.5], [0.5, 0.5, 0.5, NONE]]
)


def test_the_round_robin_vector_holds():
    assert [2 / 3, 1 / 6, 2 / 3, 1 / 2] == pytest.approx(round_robin_rewards(MATRIX).tolist())


def test_a_missing_comparison_is_neither_a_win_nor_a_loss():
    wins = MATRIX.copy()
    wins[0, 1] = wins[1, 0] = NONE

    assert [1 / 2, 1 / 4] == pytest.approx(round_robin_rewards(wins)[:2].tolist())


def test_an_answer_that_could_hardly_be_compared_has_no_reward():
    wins = MATRIX.copy()
    wins[3, :2] = wins[:2, 3] = NONE

    # One of three comparisons is left to answer 3, two of three to answers 0 and 1.
    assert [False, False, False, True] == np.isnan(round_robin_rewards(wins)).tolist()


def test_an_answer_without_rivals_has_no_reward():
    assert np.isnan(round_robin_rewards(np.array([[1.0]]))).all()


@given(st.integers(2, 6), st.data())
def test_what_one_answer_gains_the_others_lose(size, data):
    wins = np.zeros((size, size))
    for i in range(size):
        for j in range(i):
            wins[i, j] = data.draw(st.sampled_from([0, 0.25, 0.5, 0.75, 1]))
            wins[j, i] = 1 - wins[i, j]

    assert size / 2 == pytest.approx(round_robin_rewards(wins).sum())


def test_a_group_of_ties_has_equal_rewards():
    assert {0.5} == set(round_robin_rewards(np.full((4, 4), 0.5)).tolist())


def test_the_advantage_inversion_vector_holds():
    quality, estimate = np.array([0.6, 0.62, 0.58, 0.6]), np.array([0.7, 0.55, 0.66, 0.52])

    assert Inversion(2, 2, 3, 6) == advantage_inversion(quality, estimate)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8))
def test_only_a_reversed_order_is_an_inversion(values):
    quality = np.array(values, dtype=np.float64)
    same, constant = advantage_inversion(quality, 3 * quality + 1), np.zeros_like(quality)
    reverse = advantage_inversion(quality, -quality)

    assert (0, 0) == (same.flipped, same.discordant)
    assert reverse.answers == reverse.flipped
    assert 0 == advantage_inversion(quality, constant).flipped
