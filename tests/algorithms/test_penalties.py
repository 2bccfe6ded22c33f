"""Over-long and repetition penalties against numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.penalties import (
    length_reward,
    overlong_penalty,
    repetition_penalty,
    repetition_ratio,
)


def test_the_overlong_ramp_of_the_dapo_paper():
    lengths = np.array([1000, 16384, 17408, 18432, 20480, 25000])

    penalties = overlong_penalty(lengths, max_length=20480, buffer=4096)

    assert [0.0, 0.0, -0.25, -0.5, -1.0, -1.0] == penalties.tolist()


def test_without_buffer_only_what_is_beyond_the_limit_is_punished():
    penalties = overlong_penalty(np.array([9, 10, 11]), max_length=10, buffer=0)

    assert [0.0, 0.0, -1.0] == penalties.tolist()


def test_half_of_the_trigrams_of_a_loop_are_repeats():
    # 8 trigrams: 123 231 312 123 231 312 123 234; four are distinct.
    assert 0.5 == repetition_ratio([1, 2, 3, 1, 2, 3, 1, 2, 3, 4])


def test_a_response_shorter_than_one_trigram_repeats_nothing():
    assert 0.0 == repetition_ratio([])
    assert 0.0 == repetition_ratio([7, 7])


def test_only_the_end_of_the_response_is_looked_at():
    assert 0.0 == repetition_ratio([1, 1, 1, 1, 2, 3, 4], window=4)
    assert 0.5 == repetition_ratio([2, 3, 4, 1, 1, 1, 1], window=4)


@given(st.lists(st.integers(0, 200_000), max_size=60), st.integers(1, 5))
def test_the_ratio_agrees_with_counting_tuples(tokens: list[int], ngram: int):
    grams = [tuple(tokens[start : start + ngram]) for start in range(len(tokens) - ngram + 1)]
    expected = 1.0 - len(set(grams)) / len(grams) if grams else 0.0

    assert expected == repetition_ratio(tokens, ngram=ngram)


def test_the_repetition_penalty_starts_late_and_is_capped():
    penalties = repetition_penalty(np.array([0.1, 0.3, 0.5, 1.0]), start=0.3, weight=1.0, cap=0.5)

    assert [0.0, 0.0, -0.2, -0.5] == pytest.approx(penalties.tolist())


def test_the_length_reward_of_kimi_by_hand():
    lengths = np.array([10, 20, 30, 10, 30])

    found = length_reward(lengths, [True, True, True, False, False])

    # The shortest right one has a half; a wrong one gains nothing by being short.
    assert [0.5, 0.0, -0.5, 0.0, -0.5] == found.tolist()


def test_a_response_without_a_verdict_has_no_length_reward_and_is_no_measure_of_others():
    found = length_reward(np.array([10, 20, 99]), [True, True, None])

    assert [0.5, -0.5, 0.0] == found.tolist()


@pytest.mark.parametrize("solved", [[True, False], [None, None], [True, None]])
def test_equally_long_responses_or_a_single_verdict_have_no_length_reward(solved):
    assert [0.0, 0.0] == length_reward(np.array([7, 7]), solved).tolist()


@given(st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=2, max_size=9))
def test_a_wrong_response_never_earns_more_than_a_right_one_by_its_length(group):
    lengths, solved = (list(part) for part in zip(*group, strict=True))

    rewards = np.array(solved, float) + length_reward(np.array(lengths), solved)

    right = [one for one, is_right in zip(rewards, solved, strict=True) if is_right]
    wrong = [one for one, is_right in zip(rewards, solved, strict=True) if not is_right]
    assert not right or not wrong or max(wrong) < min(right)
