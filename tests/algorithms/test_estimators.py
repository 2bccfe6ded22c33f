"""pass@k and bootstrap intervals."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.algorithms.intervals import bootstrap_mean, paired_difference, pass_at_k, sign_test
from tasks.errors import DataError

SETTINGS = {"resamples": 400, "confidence": 0.95, "seed": 0}


def test_pass_at_k_by_hand():
    # 2 of 4 right: a pair misses only if it is the one pair of wrong ones, 1 of 6.
    # 1 of 4 right, k = 3: only 1 of the 4 triples leaves the right one out.
    found = pass_at_k([2, 1, 0, 4], [4, 4, 4, 4], [2, 3, 4, 1])

    assert [5 / 6, 3 / 4, 0.0, 1.0] == pytest.approx(found.tolist(), abs=1e-15)


def test_pass_at_k_equals_the_share_of_draws_with_a_solution():
    solved, scored, k = 3, 9, 4
    draws = list(combinations([True] * solved + [False] * (scored - solved), k))

    assert sum(map(any, draws)) / len(draws) == pytest.approx(pass_at_k([solved], [scored], k)[0])


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))
    )
)
def test_pass_at_k_agrees_with_exact_binomials(case):
    solved, scored, k = case
    exact = 1.0 - comb(scored - solved, k) / comb(scored, k)

    assert exact == pytest.approx(pass_at_k([solved], [scored], k)[0], abs=1e-12)


def test_pass_at_k_stays_stable_where_binomials_overflow():
    # C(10000, 500) has 860 digits. With one solved of n, pass@k is k / n exactly.
    assert 0.05 == pytest.approx(pass_at_k([1], [10_000], 500)[0], rel=1e-12)


def test_pass_at_one_is_accuracy():
    solved = np.array([0, 1, 5, 8])

    assert (solved / 8).tolist() == pytest.approx(pass_at_k(solved, [8] * 4, 1).tolist())


def test_pass_at_k_of_no_problems_is_empty():
    assert [] == pass_at_k([], [], 1).tolist()


@pytest.mark.parametrize(
    ("solved", "scored", "k", "message"),
    [
        ([1], [2], 3, "k up to 3 with 2 scored"),
        ([1], [2], 0, "1 <= k"),
        ([3], [2], 1, "solved <= scored"),
        ([-1], [2], 1, "0 <= solved"),
    ],
)
def test_pass_at_k_refuses_impossible_counts(solved, scored, k, message):
    with pytest.raises(DataError, match=message):
        pass_at_k(solved, scored, k)


def test_the_interval_agrees_with_scipy():
    values = np.random.default_rng(3).random(37)
    expected = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=999,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval

    found = bootstrap_mean(values, resamples=999, confidence=0.9, seed=5)

    assert (expected.low, expected.high) == pytest.approx((found.low, found.high), abs=1e-12)
    assert values.mean() == found.mean


def test_the_interval_of_two_problems_by_hand():
    # Resamples of {0, 1} have mean 0, 1/2, 1 with chance 1/4, 1/2, 1/4: a central 40 % interval
    # is the point 1/2, a 60 % interval reaches both ends.
    narrow = bootstrap_mean([0.0, 1.0], resamples=4000, confidence=0.4, seed=0)
    wide = bootstrap_mean([0.0, 1.0], resamples=4000, confidence=0.6, seed=0)

    assert (0.5, 0.5, 0.5) == (narrow.mean, narrow.low, narrow.high)
    assert (0.0, 1.0) == (wide.low, wide.high)


def test_the_interval_covers_the_truth_as_often_as_it_promises():
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(1000):
        accuracies = generator.binomial(4, generator.beta(0.6, 1.4, 60)) / 4
        interval = bootstrap_mean(accuracies, resamples=300, confidence=0.9, seed=trial)
        hits += interval.low <= 0.3 <= interval.high

    assert 0.87 < hits / 1000 < 0.93  # three standard errors are 0.028


def test_many_problems_are_resampled_in_chunks_with_the_same_law():
    values = np.random.default_rng(1).normal(size=20_000)

    interval = bootstrap_mean(values, resamples=300, confidence=0.95, seed=0)

    half_width = 1.96 * values.std() / np.sqrt(values.size)
    assert 2 * half_width == pytest.approx(interval.high - interval.low, rel=0.15)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(-3, 3))
def test_shifting_all_values_shifts_the_interval(values, shift):
    before = bootstrap_mean(values, **SETTINGS)
    after = bootstrap_mean(np.asarray(values) + shift, **SETTINGS)

    assert before.low <= before.high
    assert (before.low + shift, before.high + shift) == pytest.approx(
        (after.low, after.high), abs=1e-9
    )


def test_the_same_seed_gives_the_same_interval():
    values = np.linspace(0, 1, 11)

    assert bootstrap_mean(values, **SETTINGS) == bootstrap_mean(values, **SETTINGS)
    assert bootstrap_mean(values, **SETTINGS) != bootstrap_mean(values, **{**SETTINGS, "seed": 1})


def test_one_problem_has_an_interval_of_zero_width():
    interval = bootstrap_mean([0.25], **SETTINGS)

    assert (0.25, 0.25, 0.25) == (interval.mean, interval.low, interval.high)


def test_equal_values_have_an_interval_of_zero_width():
    interval = bootstrap_mean([0.1] * 9, **SETTINGS)

    assert interval.low == interval.high == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "message"), [([], "0 problems"), ([0.5, float("nan")], "value 1 of 2 is nan")]
)
def test_a_mean_over_nothing_or_nan_is_refused(values, message):
    with pytest.raises(DataError, match=message):
        bootstrap_mean(values, **SETTINGS)


def test_pairing_cancels_what_is_hard_for_both():
    hardness = np.random.default_rng(0).random(200)
    parent, candidate = hardness, np.clip(hardness + 0.05, 0, 2)

    paired = paired_difference(candidate, parent, **SETTINGS)
    alone = bootstrap_mean(candidate, **SETTINGS)

    assert 0.05 == pytest.approx(paired.mean)
    assert paired.high - paired.low < 1e-9 < alone.high - alone.low


def test_swapping_sides_flips_the_sign():
    parent, candidate = [0.0, 0.5, 1.0, 0.25], [0.5, 0.5, 1.0, 0.0]

    there = paired_difference(candidate, parent, **SETTINGS)
    back = paired_difference(parent, candidate, **SETTINGS)

    assert (there.mean, there.low, there.high) == pytest.approx((-back.mean, -back.high, -back.low))


def test_a_pair_needs_two_sides_of_equal_length():
    with pytest.raises(DataError, match="got 2 and 3"):
        paired_difference([1.0, 0.0], [1.0, 0.0, 0.0], **SETTINGS)


@pytest.mark.parametrize(
    ("better", "worse", "p_value"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (1, 0, 1.0),
        (8, 2, 0.109375),  # 2 * (1 + 10 + 45) / 1024
        (0, 10, 2 / 1024),
    ],
)
def test_the_sign_test_is_the_tail_of_the_binomial_by_hand(better, worse, p_value):
    assert p_value == sign_test(better, worse)


def test_a_split_of_thousands_of_pairs_has_a_p_value():
    assert 0.0 < sign_test(5300, 5000) < 0.005
