"""Rewards from criteria, against the specification's vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.rubrics import (
    Interaction,
    Shaping,
    in_quantile_band,
    rubicon_score,
    ruscarl_score,
    stretch,
)
from tasks.errors import DataError

SHARES = st.floats(0, 1)


def test_the_rubric_vector_holds():
    points = [5, 3, -6, 2]

    assert 0.1 == pytest.approx(ruscarl_score(points, [True, False, True, True]))
    assert -0.6 == pytest.approx(ruscarl_score(points, [False, False, True, False]))


def test_without_positive_points_there_is_no_score_to_reach():
    assert 0.0 == ruscarl_score([-2, -3], [True, False])
    assert 0.0 == ruscarl_score([], [])


@given(st.lists(st.tuples(st.integers(-9, 9), st.booleans()), max_size=8))
def test_a_score_is_at_most_one_and_all_positive_criteria_reach_it(criteria):
    points, met = [p for p, _ in criteria], [m for _, m in criteria]

    assert ruscarl_score(points, met) <= 1.0
    if any(p > 0 for p in points):
        assert 1.0 == pytest.approx(ruscarl_score(points, [p > 0 for p in points]))


def test_saturation_by_hand():
    half = (1 - math.exp(-1)) / (1 - math.exp(-2))

    assert half == pytest.approx(rubicon_score([1], [0.5], vetoed=False))
    assert (3 * half + 1) / 4 == pytest.approx(rubicon_score([3, 1], [0.5, 1], vetoed=False))


def test_a_veto_leaves_nothing():
    assert 0.0 == rubicon_score([1, 5], [1, 1], vetoed=True)


@given(st.lists(st.tuples(st.floats(0.1, 9), SHARES), min_size=1, max_size=6), st.floats(0.1, 20))
def test_the_aggregate_is_a_share_that_never_falls_when_a_score_rises(dimensions, saturation):
    weights, scores = [w for w, _ in dimensions], [s for _, s in dimensions]
    before = rubicon_score(weights, scores, vetoed=False, saturation=saturation)
    after = rubicon_score(weights, [1.0, *scores[1:]], vetoed=False, saturation=saturation)

    assert 0.0 <= before <= after + 1e-12 <= 1.0 + 2e-12


@pytest.mark.parametrize("weights", [[0.0], [2.0, -1.0]])
def test_weights_that_weigh_nothing_or_less_are_refused(weights):
    with pytest.raises(DataError, match="weights must be"):
        rubicon_score(weights, [1.0] * len(weights), vetoed=False)


def test_a_pair_that_belongs_together_earns_more_by_hand():
    together = [Interaction(0, 1, 2.0)]

    assert 1.0 == pytest.approx(rubicon_score([1, 1], [1, 1], vetoed=False, interactions=together))
    assert 0.25 == pytest.approx(rubicon_score([1, 1], [1, 0], vetoed=False, interactions=together))


def test_a_pair_that_is_one_thing_counts_once_by_hand():
    same = [Interaction(0, 1, -1.0)]

    assert 0.5 == pytest.approx(rubicon_score([1, 1], [1, 0], vetoed=False, interactions=same))
    assert 0.5 == pytest.approx(rubicon_score([1, 1], [1, 1], vetoed=False, interactions=same))
    assert 0.0 == rubicon_score([1], [1], vetoed=True, interactions=[])


PAIRS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(0, 5)).filter(lambda p: p[0] != p[1]),
    max_size=3,
)


@given(st.tuples(SHARES, SHARES, SHARES), PAIRS, st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_synergies_and_shaping_leave_a_share_that_never_falls(scores, pairs, knee, upper):
    more = {
        "interactions": [Interaction(*pair) for pair in pairs],
        "shaping": Shaping(knee, upper),
    }
    before = rubicon_score([1, 2, 3], scores, vetoed=False, **more)
    after = rubicon_score([1, 2, 3], (1.0, *scores[1:]), vetoed=False, **more)

    assert 0.0 <= before <= after + 1e-12 <= 1.0 + 2e-12


def test_the_region_above_the_knee_is_stretched_by_hand():
    shaping = Shaping(knee=0.8, upper=0.5)

    assert [0.0, 0.25, 0.5, 0.75, 1.0] == pytest.approx(
        [stretch(score, shaping) for score in (0.0, 0.4, 0.8, 0.9, 1.0)]
    )


@given(SHARES, st.floats(0.05, 0.95))
def test_an_upper_share_of_what_is_above_the_knee_changes_nothing(score, knee):
    assert score == pytest.approx(stretch(score, Shaping(knee, 1.0 - knee)))


def test_a_central_band_leaves_out_what_is_learned_and_what_is_noise():
    scores = [0.9, 0.0, 0.5, 0.4, 0.6]

    assert [False, False, True, True, True] == in_quantile_band(scores, 0.25, 0.75).tolist()
    assert [True] * 5 == in_quantile_band(scores, 0.0, 1.0).tolist()
    assert [] == in_quantile_band([], 0.2, 0.8).tolist()
