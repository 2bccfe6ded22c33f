"""Two numerics of one policy: what bf16 does, and what replay takes of it."""

import pytest

from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import RouterReplay
from tasks.replay.numerics import gaps, sample_problems


def test_bf16_shows_and_what_replays_the_trainers_own_routes_changes_nothing(tiny_moe):
    rows = gaps(tiny_moe, sample_problems(0, 3), max_new_tokens=8, seeds=[0])
    found = {(row.engines.precision, row.replay): row for row in rows}
    bf16_off = found[Precision.BF16, RouterReplay.OFF]

    assert 6 == len(found)
    assert bf16_off.mean_abs > 10.0 * found[Precision.FP32, RouterReplay.OFF].mean_abs
    r2 = found[Precision.BF16, RouterReplay.R2].mean_abs
    assert pytest.approx(bf16_off.mean_abs, rel=1e-4) == r2
    assert bf16_off.route_share == found[Precision.BF16, RouterReplay.R2].route_share
    assert 0.0 == found[Precision.BF16, RouterReplay.R3].route_share
    assert 0.0 == found[Precision.FP32, RouterReplay.OFF].route_share
    for row in rows:
        assert row.low <= row.high
        assert row.largest >= row.mean_abs


def test_the_sample_world_gives_the_same_problems_again():
    once, again = sample_problems(3, 5), sample_problems(3, 5)

    assert once == again
    assert 5 == len({problem.id for problem in once})
