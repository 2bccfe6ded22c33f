"""Over-long and repetition penalties against numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.penalties import overlong_penalty, repetition_penalty, repetition_ratio


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
