import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.group_size import (
    MAX_ZERO_VARIANCE,
    SPREAD,
    GroupSize,
    choose_group_size,
    predict_group_size,
    sizes_by_prompt,
)
from tasks.algorithms.zero_variance import zero_variance_probability
from tasks.errors import DataError


def option(size, zero_variance, per_token):
    return GroupSize(size, zero_variance, 1.0, 1.0, per_token)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_long_record_gives_the_binomial_numbers(size):
    found = predict_group_size([10_000], [100_000], [50], size)

    assert found.zero_variance == pytest.approx(zero_variance_probability(0.1, size), abs=1e-3)
    assert found.pass_at_n == pytest.approx(1 - 0.9**size, abs=1e-3)


def test_the_signal_is_the_mean_size_of_the_advantages():
    """Enumerate all groups of three for a prompt that solves half of the time."""
    sizes = []
    for rewards in itertools.product([0.0, 1.0], repeat=3):
        spread = np.std(rewards)
        centred = np.array(rewards) - np.mean(rewards)
        sizes.append(np.abs(centred / spread).mean() if spread > 0 else 0.0)

    found = predict_group_size([500_000], [1_000_000], [10], 3)

    assert np.mean(sizes) == pytest.approx(found.signal, rel=1e-4)
    assert 1e3 * found.signal / 30 == pytest.approx(found.signal_per_kilotoken)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=5))
def test_more_responses_have_zero_variance_less_often_and_earn_less_per_token(records):
    solved = [min(pair) for pair in records]
    scored = [max(pair) for pair in records]
    small, large = (
        predict_group_size(solved, scored, [10] * len(records), size) for size in (4, 8)
    )

    assert large.zero_variance < small.zero_variance
    assert large.pass_at_n > small.pass_at_n
    assert large.signal > small.signal
    assert large.signal_per_kilotoken < small.signal_per_kilotoken


def test_the_cheapest_signal_under_the_ceiling_is_chosen():
    ceiling = MAX_ZERO_VARIANCE
    options = [option(4, ceiling + 0.1, 9.0), option(8, ceiling, 5.0), option(16, 0.1, 3.0)]

    assert 8 == choose_group_size(options).size


def test_where_none_is_under_the_ceiling_the_lowest_zero_variance_rate_is_chosen():
    assert 8 == choose_group_size([option(4, 0.9, 9.0), option(8, 0.8, 1.0)]).size


def test_without_prompts_or_options_there_is_nothing_to_choose():
    with pytest.raises(DataError, match="without recorded prompts"):
        predict_group_size([], [], [], 8)
    with pytest.raises(DataError, match="no group sizes to choose from"):
        choose_group_size([])


RATES = st.floats(0.5, 20.0)
PROMPTS = st.lists(st.tuples(RATES, RATES, st.floats(1.0, 200.0)), min_size=1, max_size=40)


@given(PROMPTS)
def test_sizes_by_prompt_lie_in_their_bounds_and_cost_about_the_same_tokens(prompts):
    columns = np.array(prompts).T
    sizes = sizes_by_prompt(*columns, mean=8)
    tokens = columns[2]

    assert (8 // SPREAD <= sizes).all()
    assert (sizes <= 8 * SPREAD).all()
    # Each is rounded by half a response at most.
    assert abs((sizes - 8) @ tokens) <= 0.5 * tokens.sum() + 1e-6


def test_twice_the_deviation_or_a_quarter_of_the_tokens_is_twice_the_others():
    solved = np.array([500_000, 66_987])  # p (1 - p) is 1/4 and 1/16
    found = sizes_by_prompt(solved, 1_000_000 - solved, [50, 50], mean=8)
    lengths = sizes_by_prompt([5.0, 5.0], [5.0, 5.0], [25, 100], mean=8)

    # N - 1 twice as large, for 16 responses: 10.3 and 5.7.
    assert [10, 6] == found.tolist()
    # N - 1 twice as large at a quarter of the length, for 8 x 125 tokens: 12.7 and 6.8.
    assert [13, 7] == lengths.tolist()


def test_no_other_sizes_of_the_same_tokens_have_less_noise():
    generator = np.random.default_rng(0)
    solved, failed = generator.uniform(2.0, 9.0, (2, 30))
    tokens = generator.uniform(20.0, 60.0, 30)
    noise = solved * failed / ((solved + failed) * (solved + failed + 1.0))
    sizes = sizes_by_prompt(solved, failed, tokens, mean=8)
    least = (noise / (sizes - 1.0)).sum()

    assert least < (noise / 7.0).sum()
    for _ in range(200):
        other = np.clip(sizes + generator.integers(-2, 3, 30), 4, 16)
        if other @ tokens <= sizes @ tokens:
            assert (noise / (other - 1.0)).sum() > least - 1e-3


def test_equal_prompts_have_the_mean_size_and_no_prompts_none():
    assert [8, 8] == sizes_by_prompt([2.0, 2.0], [1.0, 1.0], [30, 30], mean=8).tolist()
    assert [2] == sizes_by_prompt([2.0], [1.0], [0.0], mean=2).tolist()
    assert [] == sizes_by_prompt([], [], [], mean=8).tolist()
