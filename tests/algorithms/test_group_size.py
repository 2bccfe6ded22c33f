import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.group_size import (
    MAX_ZERO_VARIANCE,
    GroupSize,
    choose_group_size,
    predict_group_size,
    sizes_by_rate,
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


def test_a_prompt_that_is_solved_half_as_often_has_twice_the_responses():
    assert [4, 8] == sizes_by_rate([0.5, 0.25], [10, 10], mean=6, bounds=(2, 16))
    assert [6] * 3 == sizes_by_rate([0.3] * 3, [10, 20, 30], mean=6, bounds=(2, 16))
    assert [] == sizes_by_rate([], [], mean=6, bounds=(2, 16))


@given(
    rates=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=30),
    data=st.data(),
)
def test_sizes_by_rate_stay_in_their_bounds_and_cost_the_tokens_of_one_size(rates, data):
    lengths = data.draw(
        st.lists(st.floats(1, 500), min_size=len(rates), max_size=len(rates)), label="lengths"
    )

    sizes = sizes_by_rate(rates, lengths, mean=8, bounds=(4, 16))

    assert all(4 <= size <= 16 for size in sizes)
    cost = sum(size * length for size, length in zip(sizes, lengths, strict=True))
    assert cost == pytest.approx(8 * sum(lengths), abs=max(lengths))
    order = sorted(zip(rates, sizes, strict=True))
    assert all(after <= before + 1 for (_, before), (_, after) in itertools.pairwise(order))
