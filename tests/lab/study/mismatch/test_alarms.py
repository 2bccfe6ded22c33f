"""Alarms before a collapse, on courses made by hand."""

import numpy as np
import pytest

from tasks.lab.study.mismatch.alarms import (
    CALM_STEPS,
    WATCHED,
    alarm_step,
    alarms,
    alarms_table,
    collapse_step,
)

USUAL = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.1, 0.9, 1.0]
assert len(USUAL) == CALM_STEPS


def run(rewards: list[float], k3: list[float]) -> list[dict[str, float]]:
    """Metrics of steps with these rewards and k3; the other watched quantities are constant."""
    calm = dict.fromkeys(WATCHED, 1.0)
    return [
        calm | {"reward/mean": reward, "mismatch/k3": value}
        for reward, value in zip(rewards, k3, strict=True)
    ]


def test_a_run_has_collapsed_where_three_steps_average_below_half_of_the_best():
    # Means over three steps: 0.5, 0.5, 0.4, 0.3, 0.2 (step 7).
    assert 7 == collapse_step([0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2])


@pytest.mark.parametrize("rewards", [[], [1.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0] * 9])
def test_a_short_rising_or_flat_run_has_not_collapsed(rewards):
    assert collapse_step(rewards) is None


def test_one_step_outside_is_not_an_alarm_and_two_are():
    assert alarm_step([*USUAL, 9.0, 1.0, 9.0]) is None
    assert 12 == alarm_step([*USUAL, 9.0, 9.0])
    assert 13 == alarm_step([*USUAL, 1.0, -9.0, 9.0])


def test_a_quantity_that_was_constant_departs_as_soon_as_it_changes():
    assert 13 == alarm_step([0.0] * 11 + [0.1, 0.1])


def test_a_step_without_the_quantity_neither_raises_nor_ends_an_alarm():
    nan = float("nan")

    assert 13 == alarm_step([*USUAL, 9.0, nan, 9.0])
    assert alarm_step([*USUAL, nan, nan]) is None
    assert alarm_step([nan] * 20) is None


def test_the_alarm_does_not_depend_on_the_unit_of_the_quantity():
    values = np.array([*USUAL, 1.0, 1.2, 2.0, 3.0])

    assert alarm_step(list(values)) == alarm_step(list(values * 1e-6 + 5.0)) is not None


def test_the_lead_is_counted_from_the_alarm_to_the_collapse():
    metrics = run(rewards=[0.8] * 14 + [0.1] * 3, k3=[*USUAL, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0])

    found = {alarm.metric: alarm for alarm in alarms(metrics)}

    # The mean of steps 14 to 16 is 0.33.
    assert 16 == collapse_step([step["reward/mean"] for step in metrics])
    assert (12, 4) == (found["mismatch/k3"].step, found["mismatch/k3"].lead)
    assert found["policy/grad_norm"].step is None


def test_the_table_says_where_an_alarm_was_false():
    steps = run(rewards=[0.8] * 14, k3=[*USUAL, 5.0, 5.0, 5.0, 5.0])

    table = alarms_table({"r3": steps})

    assert "r3: no collapse" == table.columns[1].header
    assert ["12", *["-"] * (len(WATCHED) - 1)] == list(table.columns[1].cells)
