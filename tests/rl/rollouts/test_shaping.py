import numpy as np
import pytest

from data_schemas.rl_settings import RewardSettings
from tasks.rl.collector import penalties


def test_penalties_fall_on_long_and_on_repeating_responses(settings, make_rollout):
    chosen = settings.model_copy(
        update={"max_new_tokens": 20, "rewards": RewardSettings(overlong_buffer=10)}
    )
    looping = make_rollout(response_tokens=np.array([7] * 9, dtype=np.int32))

    short, long, repeated = penalties(chosen, [make_rollout(0, 5), make_rollout(0, 15), looping])

    assert 0.0 == short
    assert -0.25 == pytest.approx(long)  # half of the buffer, weight 0.5
    assert -0.5 == pytest.approx(repeated)  # 1 - 1/7 - 0.3 = 0.557, capped
