import numpy as np
import pytest

from data_schemas.rl_settings import RewardSettings
from data_schemas.verdicts import abstain, scored
from tasks.rl.collector import penalties


def test_penalties_fall_on_long_and_on_repeating_responses(settings, make_rollout):
    chosen = settings.model_copy(
        update={"max_new_tokens": 20, "rewards": RewardSettings(overlong_buffer=10)}
    )
    looping = make_rollout(response_tokens=np.array([7] * 9, dtype=np.int32))

    rollouts = [make_rollout(0, 5), make_rollout(0, 15), looping]
    short, long, repeated = penalties(chosen, rollouts, [scored(1.0, "right")] * 3)

    assert 0.0 == short
    assert -0.25 == pytest.approx(long)  # half of the buffer, weight 0.5
    assert -0.5 == pytest.approx(repeated)  # 1 - 1/7 - 0.3 = 0.557, capped


def test_thought_that_was_not_needed_is_not_paid(settings, make_rollout):
    rewards = RewardSettings(overlong_weight=0.0, repetition_weight=0.0, length_weight=0.4)
    chosen = settings.model_copy(update={"rewards": rewards})
    rollouts = [make_rollout(0, length) for length in (4, 8, 4, 6)]
    right = scored(1.0, "right")

    shaping = penalties(chosen, rollouts, [right, right, scored(0.0, "wrong"), abstain("late")])

    # Kimi k1.5's of -0.5 to 0.5, of which this is 0.4; a short wrong answer has none.
    assert [0.2, -0.2, 0.0, 0.0] == pytest.approx(shaping)
