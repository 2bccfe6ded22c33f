import json
import math
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import clipped_objective
from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.icepop import IcePop
from tasks.algorithms.terms.stale import is_stale
from tasks.algorithms.terms.tis import TIS
from tasks.lab.terms.geometric_band import GeometricBand
from tasks.lab.terms.token_band import TokenBand
from tests.algorithms.signals import signal_of

VECTORS = json.loads((Path(__file__).parents[1] / "off_policy_vectors.json").read_text())[
    "off_policy_masks"
]
RATIOS = torch.tensor([[1.0, 1.9, 3.0, 0.4, 0.6, 9.0, 100.0]])
MASK = torch.tensor([[True] * 6 + [False]])


def weigh(*terms, gap=None, mask=MASK):
    """Weights and metrics of some terms, where trainer and engine are a log-ratio apart."""
    gap = RATIOS.log() if gap is None else gap
    signal = fold_step(terms, signal_of(mask, rollout_prompt_NT=gap))
    return signal.weights_NT, signal.metrics


def test_tis_cuts_large_ratios_to_the_cap():
    weights, metrics = weigh(TIS())

    assert [1.0, 1.9, 2.0, 0.4, 0.6, 2.0, 1.0] == pytest.approx(weights[0].tolist())
    assert {"correction/truncated_share": pytest.approx(2 / 6)} == metrics


def test_icepop_drops_tokens_outside_its_band():
    weights, metrics = weigh(IcePop())

    assert [1.0, 1.9, 3.0, 0.0, 0.6, 0.0, 1.0] == pytest.approx(weights[0].tolist())
    assert {"correction/masked_share": pytest.approx(2 / 6)} == metrics


def test_no_tokens_give_no_shares():
    empty = torch.zeros(0, 4)

    weights, metrics = weigh(TIS(), IcePop(), TokenBand(), gap=empty, mask=empty.bool())

    assert (0, 4) == tuple(weights.shape)
    assert {0.0} == set(metrics.values())


def test_weights_are_constants():
    train = torch.tensor([[0.1]], requires_grad=True)

    weights, _ = weigh(TIS(), gap=train, mask=MASK[:, :1])

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

    def weights(*terms):
        return weigh(*terms, gap=gap, mask=mask)[0][0].tolist()

    def keeps(*terms):
        return float(all(weights(*terms)))

    masked = TIS(cap=1e9), GeometricBand(low=0.999, high=1.002)
    assert vector["icepop_0.5_5"] == pytest.approx(weights(IcePop()), abs=2e-6)
    assert vector["icepop_0.5_2"] == pytest.approx(weights(IcePop(cap=2.0)), abs=2e-6)
    assert vector["seq_mask_tis_0.999_1.002"] == pytest.approx(weights(*masked), abs=2e-6)
    assert vector["geometric_0.99_1.01"] == keeps(GeometricBand())
    assert vector["outlier_1e-4_100"] == keeps(TokenBand())


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

    _, metrics = weigh(GeometricBand(), TokenBand(low=0.5, high=5.0), gap=gap, mask=mask)

    assert 0.0 == metrics["correction/outside_geometric_band"]
    assert 1.0 == metrics["correction/outside_token_band"]


@pytest.mark.parametrize(
    ("term", "bound"),
    [(GeometricBand, {"low": 1.01}), (TokenBand, {"high": 0.9}), (IcePop, {"floor": 1.1})],
)
def test_bounds_that_mask_equal_probabilities_are_refused(term, bound):
    with pytest.raises(ValidationError, match="than or equal to 1"):
        term(**bound)
