import json
import math
from pathlib import Path

import pytest
import torch

from data_schemas.rl_settings import Correction, LossSettings, MismatchSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import clipped_objective
from tasks.algorithms.mismatch import correction_weights, is_stale

VECTORS = json.loads((Path(__file__).parent / "off_policy_vectors.json").read_text())[
    "off_policy_masks"
]
RATIOS = torch.tensor([[1.0, 1.9, 3.0, 0.4, 0.6, 9.0, 100.0]])
MASK = torch.tensor([[True] * 6 + [False]])


def weigh(correction, cap):
    zero = torch.zeros_like(RATIOS)
    settings = MismatchSettings(correction=correction, cap=cap)
    return correction_weights(RATIOS.log(), zero, MASK, settings)


def test_tis_cuts_large_ratios_to_the_cap():
    weights, metrics = weigh(Correction.TIS, 2.0)

    assert [1.0, 1.9, 2.0, 0.4, 0.6, 2.0, 1.0] == pytest.approx(weights[0].tolist())
    assert 2 / 6 == pytest.approx(metrics["correction/truncated_share"])
    assert 0.0 == metrics["correction/masked_share"]


def test_icepop_drops_tokens_outside_its_band():
    weights, metrics = weigh(Correction.ICEPOP, 5.0)

    assert [1.0, 1.9, 3.0, 0.0, 0.6, 0.0, 1.0] == pytest.approx(weights[0].tolist())
    assert 2 / 6 == pytest.approx(metrics["correction/masked_share"])


def test_off_weighs_every_token_one():
    weights, metrics = weigh(Correction.OFF, 2.0)

    assert (weights == 1.0).all()
    assert {0.0} == set(metrics.values())


def test_no_tokens_give_no_shares():
    empty = torch.zeros(0, 4)

    settings = MismatchSettings(correction=Correction.TIS, token_band=(0.5, 2.0))
    weights, metrics = correction_weights(empty, empty, empty.bool(), settings)

    assert (0, 4) == tuple(weights.shape)
    assert {0.0} == set(metrics.values())


def test_weights_are_constants():
    train = torch.tensor([[0.1]], requires_grad=True)

    tis = MismatchSettings(correction=Correction.TIS)
    weights, _ = correction_weights(train, torch.zeros(1, 1), MASK[:, :1], tis)

    assert not weights.requires_grad
    assert math.exp(0.1) == pytest.approx(float(weights))


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_weight_in_the_advantage_scales_the_tokens_loss_and_nothing_else(advantage):
    gap = torch.tensor([[0.4, -0.4, 0.05]])
    weights = torch.tensor([[2.0, 0.5, 0.0]])
    zero = torch.zeros_like(gap)
    settings = LossSettings(kind="grpo", clip_low=0.2, clip_high=0.28)
    plan = table.plan(settings, zero, torch.ones(1, 3, dtype=torch.bool), vocabulary=8)

    def tokens(scale):
        logprobs = gap.clone().requires_grad_()
        objective, clipped = clipped_objective(
            logprobs, zero, advantage * scale, plan, ratio_mode="gspo_token"
        )
        objective.sum().backward()
        return logprobs.grad, clipped

    plain, weighed = tokens(torch.ones_like(gap)), tokens(weights)

    assert torch.allclose(plain[0] * weights, weighed[0])
    assert plain[1][0, :2].tolist() == weighed[1][0, :2].tolist()


@pytest.mark.parametrize("name", VECTORS["sequences"])
def test_masks_and_weights_are_those_worked_out_by_hand(name):
    vector = VECTORS["sequences"][name]
    gap = torch.tensor([vector["log_ratio"]])
    mask = torch.ones_like(gap, dtype=torch.bool)
    endless = MismatchSettings.model_construct(
        **dict(MismatchSettings(correction=Correction.TIS, geometric_band=(0.999, 1.002)))
        | {"cap": 1e9}
    )

    def weights(**changes):
        chosen = endless if changes == {} else MismatchSettings(**changes)
        return correction_weights(gap, torch.zeros_like(gap), mask, chosen)[0][0].tolist()

    def keeps(**changes):
        return float(all(weights(**changes)))

    assert vector["icepop_0.5_5"] == pytest.approx(weights(correction="icepop", cap=5.0), abs=2e-6)
    assert vector["icepop_0.5_2"] == pytest.approx(weights(correction="icepop", cap=2.0), abs=2e-6)
    assert vector["seq_mask_tis_0.999_1.002"] == pytest.approx(weights(), abs=2e-6)
    assert vector["geometric_0.99_1.01"] == keeps(geometric_band=(0.99, 1.01))
    assert vector["outlier_1e-4_100"] == keeps(token_band=(1e-4, 100.0))


@pytest.mark.parametrize("name", VECTORS["sequences"])
def test_v32_leaves_out_what_was_wrong_and_has_become_unlikely(name):
    vector = VECTORS["sequences"][name]
    logprobs = torch.tensor([vector["log_ratio"]])
    advantages = torch.full_like(logprobs, vector["advantage"])
    mask = torch.ones_like(logprobs, dtype=torch.bool)

    stale = is_stale(logprobs, torch.zeros_like(logprobs), advantages, mask, 0.5)

    assert [vector["v32_keep_delta_0.5"] == 0.0] == stale.tolist()
    assert not is_stale(logprobs, logprobs * 0, -advantages.abs() * 0, mask, 0.0).any()


def test_an_outlier_of_a_long_response_hides_in_the_mean_and_not_from_the_band_of_tokens():
    gap = torch.zeros(1, 1000)
    gap[0, 500] = 2.0
    mask = torch.ones_like(gap, dtype=torch.bool)

    def share(**band):
        settings = MismatchSettings(**band)
        metrics = correction_weights(gap, torch.zeros_like(gap), mask, settings)[1]
        return metrics["correction/masked_responses"]

    assert 0.0 == share(geometric_band=(0.99, 1.01))
    assert 1.0 == share(token_band=(0.5, 5.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"geometric_band": (1.01, 1.02)},
            r"geometric_band is \[1\.01, 1\.02\] and must contain 1",
        ),
        ({"token_band": (0.5, 0.9)}, r"token_band is \[0\.5, 0\.9\] and must contain 1"),
        ({"floor": 0.2}, r"floor is IcePop's: set mismatch\.correction to 'icepop'"),
    ],
)
def test_bounds_that_mask_equal_probabilities_or_do_nothing_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        MismatchSettings(**changes)
