"""Rewards from criteria, against the specification's vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.rubrics import num_shown, rubicon_score, ruscarl_score, scaffold_ratios
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


@pytest.mark.parametrize(
    ("step", "first", "second", "shown"),
    [
        (1, 0.999999999986112, 0.8571428571309531, [10, 9, 7, 6, 4, 3, 1, 0]),
        (60, 0.9795316516801369, 0.8395985585829744, [10, 8, 7, 6, 4, 3, 1, 0]),
        (70, 0.57114713093136, 0.4895546836554514, [6, 5, 4, 3, 2, 2, 1, 0]),
        (71, 0.48209934439034535, 0.4132280094774389, [5, 4, 3, 3, 2, 1, 1, 0]),
        (72, 0.3941742275812828, 0.3378636236410995, [4, 3, 3, 2, 2, 1, 1, 0]),
        (80, 0.03573867383981826, 0.030633149005558507, [0] * 8),
        (350, 3.7200759760208356e-44, 3.188636550875002e-44, [0] * 8),
    ],
)
def test_the_scaffold_vector_holds(step, first, second, shown):
    ratios = scaffold_ratios(step, 350, 8)

    assert [first, second] == pytest.approx(ratios[:2], rel=1e-9)
    assert shown == [num_shown(10, ratio) for ratio in ratios]


def test_half_a_criterion_rounds_to_even():
    assert [0, 2, 2] == [num_shown(n, 0.5) for n in (1, 3, 5)]


def test_the_last_rollout_sees_nothing_even_alone_or_in_a_run_of_one_step():
    assert [0.0] == scaffold_ratios(1, 1, 1)
    assert 0.0 == scaffold_ratios(1, 1, 4)[-1]


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
