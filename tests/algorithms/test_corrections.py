import math

import pytest
import torch

from data_schemas.rl_settings import Correction
from tasks.algorithms.corrections import correction_weights
from tasks.algorithms.losses import grpo
from tasks.algorithms.losses.surrogate import clipped_objective

RATIOS = torch.tensor([[1.0, 1.9, 3.0, 0.4, 0.6, 9.0, 100.0]])
MASK = torch.tensor([[True] * 6 + [False]])


def weigh(correction, cap):
    zero = torch.zeros_like(RATIOS)
    return correction_weights(RATIOS.log(), zero, MASK, correction=correction, cap=cap)


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

    weights, metrics = correction_weights(
        empty, empty, empty.bool(), correction=Correction.TIS, cap=2.0
    )

    assert (0, 4) == tuple(weights.shape)
    assert {0.0} == set(metrics.values())


def test_weights_are_constants():
    train = torch.tensor([[0.1]], requires_grad=True)

    weights, _ = correction_weights(
        train, torch.zeros(1, 1), MASK[:, :1], correction=Correction.TIS, cap=2.0
    )

    assert not weights.requires_grad
    assert math.exp(0.1) == pytest.approx(float(weights))


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_weight_in_the_advantage_scales_the_tokens_loss_and_nothing_else(advantage):
    gap = torch.tensor([[0.4, -0.4, 0.05]])
    weights = torch.tensor([[2.0, 0.5, 0.0]])
    zero = torch.zeros_like(gap)
    plan = grpo.plan(torch.ones(1, 3, dtype=torch.bool), clip_low=0.2, clip_high=0.28)

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
