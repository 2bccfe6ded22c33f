import numpy as np
import pytest

from tasks.algorithms.watched_rewards import change, divergence

RISE = [0.10, 0.12, 0.11, 0.13, 0.40, 0.42, 0.41, 0.43]


def test_the_halves_of_a_phase_are_compared_with_welchs_error():
    one = change(RISE)

    assert (0.115, 0.415) == pytest.approx((one.before, one.after))
    assert one.error == pytest.approx(np.sqrt(2 * np.var([0, 1, 2, 3], ddof=1) / 4) / 100)


def test_seven_steps_say_nothing():
    assert change(RISE[:7]) is None
    assert "" == divergence("form", RISE[:7], RISE[6::-1])


def test_a_rise_of_the_reward_against_a_fall_of_the_monitor_is_named():
    line = divergence("form", RISE, [1.0 - value for value in RISE])

    assert "monitor form falls (0.885 to 0.585)" in line
    assert "" == divergence("form", RISE, RISE)
    assert "" == divergence("form", [0.5] * 8, [1.0 - value for value in RISE])


def test_steps_that_are_alike_hardly_ever_diverge():
    draws = np.random.default_rng(1)
    found = sum(
        bool(divergence("form", draws.normal(0.5, 0.1, 20), draws.normal(0.5, 0.1, 20)))
        for _ in range(300)
    )

    assert 0 == found
