import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.above_graded import above_graded, complaint


def test_a_group_is_compared_with_the_grade_of_its_own_prompt():
    # 0.5, 0 and -0.25: mean 1/12, variance (25 + 1 + 16) / 144 / 2 = 7 / 48.
    assert pytest.approx((1 / 12, (7 / 48 / 3) ** 0.5)) == above_graded(
        [1.0, 0.5, 0.0], [0.5, 0.5, 0.25]
    )


@pytest.mark.parametrize("rates", [[], [0.5]])
def test_the_error_of_fewer_than_two_groups_is_not_known(rates):
    assert None is above_graded(rates, rates)


def test_which_prompts_are_drawn_does_not_move_the_curve():
    easy, hard = above_graded([1.0, 0.8], [0.9, 0.7]), above_graded([0.2, 0.0], [0.1, -0.1])

    assert easy == pytest.approx(hard)


FALL = [(0.2, 0.1)] * 5 + [(-0.2, 0.1)] * 5


def test_a_fall_beyond_chance_is_said_with_its_numbers():
    # 0.4 against 3.5 x 0.1 x sqrt(1/5 + 1/5) = 0.22.
    assert (
        "in the last 5 steps it solved -0.20 against grading, in the 5 before +0.20 "
        "(standard error of the difference 0.06)"
    ) in complaint(FALL)


@pytest.mark.parametrize(
    "steps",
    [
        FALL[4:],  # one step before the fall
        [(-gain, error) for gain, error in FALL],
        [(gain, 0.2) for gain, error in FALL],
        [(gain / 4.01, 0.0) for gain, error in FALL],  # a tenth, however sure
    ],
)
def test_little_a_rise_and_what_may_be_chance_are_not_said(steps):
    assert "" == complaint(steps)


def test_a_fall_long_ago_is_not_said_again():
    assert "" != complaint(FALL)
    assert "" == complaint(FALL + [(-0.2, 0.1)] * 25)


@given(st.floats(-0.5, 0.5))
def test_where_grading_lay_has_no_part_in_it(offset):
    moved = [(gain + offset, error) for gain, error in FALL]

    assert bool(complaint(moved)) is bool(complaint(FALL))


def first_warning(draw, steps, fall):
    """Steps after which a phase of 12 groups of 8 warns first; their number if it never does.

    The true rates fall by `fall` from step 10 to step 14.
    """
    compared = []
    for step in range(steps):
        rates_G = draw.beta(2, 2, 12)
        graded_G = draw.binomial(4, rates_G) / 4
        now_G = np.clip(rates_G - fall * np.clip((step - 9) / 5, 0, 1), 0, 1)
        compared.append(above_graded(draw.binomial(8, now_G) / 8, graded_G))
        if complaint(compared):
            return step
    return steps


def test_a_policy_that_stands_still_is_hardly_ever_accused():
    draw = np.random.default_rng(0)

    silent = sum(first_warning(draw, 100, fall=0.0) == 100 for _ in range(100))

    assert silent >= 97


def test_a_policy_that_loses_a_third_within_five_steps_is_found_as_they_end():
    draw = np.random.default_rng(1)
    steps = [first_warning(draw, 40, fall=0.3) for _ in range(100)]

    assert sum(step < 40 for step in steps) >= 97
    assert 12 <= np.median(steps) <= 15
