import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression

from tasks.algorithms.zero_variance import (
    discounted_beta,
    fit_logistic,
    moved_log_odds,
    ranking_quality,
    shrunken_rate,
    zero_variance_expectation,
    zero_variance_probability,
)

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


@pytest.mark.parametrize("row", VECTORS["zero_variance_probability"]["table"], ids=str)
def test_chance_of_a_zero_variance_group(row):
    for size in (4, 8, 16, 32):
        assert row[f"N{size}"] == pytest.approx(zero_variance_probability(row["p"], size))


def test_an_uncertain_pass_rate_gives_the_worked_expectation():
    # Uniform: the number solved of N is equally likely to be 0 .. N.
    assert 2 / 9 == pytest.approx(zero_variance_expectation(1.0, 1.0, 8))
    # 2/4 * 3/5 + 2/4 * 3/5
    assert 0.6 == pytest.approx(zero_variance_expectation(2.0, 2.0, 2))


@pytest.mark.parametrize(("solved", "failed"), [(0.3, 4.0), (2.0, 2.0), (9.0, 1.5)])
def test_the_expectation_agrees_with_scipy_and_is_above_that_of_the_mean(solved, failed):
    pmf = betabinom.pmf([0, 8], 8, solved, failed)

    found = zero_variance_expectation(solved, failed, 8)

    assert float(pmf.sum()) == pytest.approx(found)
    assert zero_variance_probability(solved / (solved + failed), 8) < found
    assert found == pytest.approx(zero_variance_expectation(failed, solved, 8))


def test_a_rate_known_from_very_many_responses_is_certain():
    expected = zero_variance_probability(0.9, 8)

    assert expected == pytest.approx(zero_variance_expectation(9e8, 1e8, 8), rel=1e-6)


def test_a_small_group_is_drawn_to_the_one_around_it():
    assert 0.5 == shrunken_rate([], 4.0)
    assert 0.5 == shrunken_rate([(0.0, 0.0), (0.0, 0.0)], 4.0)
    # (30 + 4 * 0.5) / (36 + 4) = 0.8; (0 + 4 * 0.8) / (4 + 4) = 0.4
    assert 0.4 == pytest.approx(shrunken_rate([(30.0, 36.0), (0.0, 4.0)], 4.0))


RATES = st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.0, 1.0)), min_size=1, max_size=20)


def summed(pairs):
    return sum(one for one, _ in pairs), sum(two for _, two in pairs), len(pairs)


def test_a_movement_is_the_difference_in_log_odds_drawn_towards_none():
    # Half of 2 groups was predicted and all was observed; with 2 more at 1/2 it is 3 of 4.
    assert math.log(3.0) == pytest.approx(moved_log_odds([(1.0, 2.0, 2)], 2.0))
    # A family of 2 groups with the same outcomes begins at 3/4: 3.5 of 4.
    assert math.log(7.0) == pytest.approx(moved_log_odds([(1.0, 2.0, 2)] * 2, 2.0))
    assert 0.0 == moved_log_odds([(0.0, 0.0, 0)] * 2, 2.0)
    assert math.log(3.0) == pytest.approx(moved_log_odds([(1.0, 2.0, 2), (0.0, 0.0, 0)], 2.0))


@given(RATES)
def test_what_came_as_predicted_moves_nothing_and_more_than_that_moves_up(pairs):
    predicted, observed, number = summed(pairs)

    assert 0.0 == pytest.approx(moved_log_odds([(predicted, predicted, number)], 2.0), abs=1e-9)
    if abs(observed - predicted) > 1e-6:  # below it the sign is one of rounding
        up = moved_log_odds([(predicted, observed, number)], 2.0) > 0.0
        assert up == (observed > predicted)


@given(RATES)
def test_a_solved_group_moves_as_far_up_as_a_failed_one_moves_down(pairs):
    mirrored = [(1.0 - expected, 1.0 - observed) for expected, observed in pairs]

    assert moved_log_odds([summed(pairs)], 2.0) == pytest.approx(
        -moved_log_odds([summed(mirrored)], 2.0), abs=1e-9
    )


def test_many_groups_show_the_true_movement():
    rate = expit(logit(0.3) + 1.5)

    assert 1.5 == pytest.approx(moved_log_odds([(3e5, 1e6 * rate, 1_000_000)], 2.0), abs=1e-4)


@pytest.mark.parametrize("decay", ["1.0", "0.5"])
def test_mopps_posterior_is_that_of_the_vector(decay):
    vector = {
        "1.0": [(3.0, 7.0), (7.0, 11.0), (15.0, 11.0)],
        "0.5": [(3.0, 7.0), (6.0, 8.0), (11.5, 4.5)],
    }
    flat = {"1.0": 0.026183, "0.5": 0.118448}
    believed, found = (1.0, 1.0), []
    for solved in (2, 4, 8):
        believed = discounted_beta(believed, solved, 8 - solved, float(decay))
        found.append(believed)

    assert vector[decay] == found
    assert flat[decay] == pytest.approx(zero_variance_expectation(*believed, 8), abs=2e-6)


def test_ranking_quality_is_the_share_of_pairs_in_order():
    # Pairs: .9 above .2 and .5; .5 above .2 and tied with .5: 3.5 of 4.
    assert 0.875 == ranking_quality([0.9, 0.5, 0.5, 0.2], [True, True, False, False])
    assert ranking_quality([0.1, 0.2], [True, True]) is None


def test_the_logistic_regression_is_that_of_scikit_learn():
    generator = np.random.default_rng(3)
    inputs_NF = np.c_[np.ones(60), generator.normal(size=(60, 3))]
    happened_N = (generator.random(60) < expit(inputs_NF @ [0.5, 1.0, -2.0, 0.0])).astype(float)

    ours = fit_logistic(inputs_NF, happened_N)

    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    theirs.fit(inputs_NF, happened_N)
    assert theirs.coef_[0] == pytest.approx(ours, abs=1e-5)
    assert not fit_logistic(inputs_NF[:0], happened_N[:0]).any()
