"""The published step: what the simulator reproduces, and what it does not."""

from dataclasses import replace

import pytest

from tasks.capacity.simulation.lengths import MEAN_SHARE
from tasks.capacity.simulation.published import SHARES, baseline, compare_step
from tasks.capacity.simulation.rates import Efficiency, trainer_rates

FITTED = replace(Efficiency(), reward_s=2.433)
"""What `fit` finds; seconds per reward are not those of this pipeline."""


@pytest.fixture(scope="module")
def found():
    return {one.name: one for one in compare_step(FITTED)}


@pytest.mark.parametrize("part", ["rollout", "reward", "update"])
def test_the_constants_fit_the_ratios_of_three_parts(found, part):
    measured = found[part].simulated / found["update"].simulated

    assert pytest.approx(SHARES[part] / SHARES["update"], rel=0.01) == measured


@pytest.mark.parametrize("name", ["reward overlap", "fp8 rollouts", "length-based load balancing"])
def test_the_speed_ups_are_reproduced_within_a_tenth(found, name):
    assert abs(found[name].error) < 0.1
    assert not found[name].fitted


def test_the_weight_sync_is_reproduced_within_a_tenth_of_the_update(found):
    simulated = found["weight_sync"].simulated / found["update"].simulated

    assert pytest.approx(SHARES["weight_sync"] / SHARES["update"], rel=0.1) == simulated


def test_old_log_probs_are_more_than_any_forward_pass_on_the_tokens_of_an_update(found):
    plan, seen = baseline(), MEAN_SHARE * 32_768
    ratios = [
        score / update
        for recompute in (False, True)
        for compute in (0.1, 0.4, 1e6)
        for score, update in [
            trainer_rates(
                replace(plan, layout=plan.layout.model_copy(update={"recompute": recompute})),
                replace(FITTED, compute=compute),
                seen,
            )
        ]
    ]

    assert max(ratios) < 0.5 < SHARES["old_logprobs"] / SHARES["update"]
    assert found["old_logprobs"].error < -0.5
