"""Minutes of RL: each call continues behind the last committed step and stops on time."""

import pytest

from data_schemas.machine_settings import MachineSettings
from data_schemas.rl_settings import RouterReplay
from tasks.durability import states
from tasks.lab.study.mismatch.drift import settings_of
from tasks.rl import state
from tests.bench.rl_minutes import ENDLESS, minutes_of, progress_of, train_until

NOW = 1e-9
"""Minutes that the first step is longer than."""


@pytest.mark.slow
def test_a_run_continues_where_the_call_before_stopped(tmp_path):
    settings = settings_of(
        MachineSettings(), RouterReplay.R3, steps=ENDLESS, prompts=2, tokens=8
    ).model_copy(update={"commit_every": 1})

    first = train_until(NOW, settings, tmp_path)
    same = train_until(NOW, settings, tmp_path)
    second = train_until(first.minutes + NOW, settings, tmp_path)

    assert first == same
    assert (1, 2) == (first.steps, second.steps)
    assert 2 == states.newest(tmp_path)
    records = list(state.read_steps(tmp_path, 2))
    assert first.minutes == minutes_of(records[0])
    assert second == progress_of(records, second.until)
    # What overlaps with another part is not counted twice.
    parts = second.seconds
    whole = sum(parts.values()) - parts["rollout"] - parts["reward"]
    assert abs(whole / 60.0 - second.minutes) < 1e-9
