"""Gradients of losses, penalty and corrections by finite differences, beside every clamp.

In fp64. What a clamp takes out of the derivative of a factor has to leave the product, too.
"""

import math

import pytest
import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import MAX_LOG_RATIO
from tasks.algorithms.terms.icepop import IcePop
from tasks.algorithms.terms.kl import MAX_GAP, kl_penalty
from tasks.algorithms.terms.tis import TIS
from tests.algorithms.signals import signal_of
from tests.tables import for_each

LOW, HIGH, STEP, BESIDE = 0.2, 0.28, 1e-6, 1e-3
EDGES = (
    *(math.log(1.0 - LOW), math.log(1.0 + HIGH)),  # of a ratio
    *(-LOW, HIGH),  # of a log-ratio
    *(-MAX_LOG_RATIO, 0.0, MAX_LOG_RATIO),
)
POINTS = sorted({edge + side for edge in EDGES for side in (-BESIDE, BESIDE)})
LIKELY, TOKENS = -0.4, 3
ALL = torch.ones(1, TOKENS, dtype=torch.bool)
OLD = torch.full((1, TOKENS), -1.5, dtype=torch.float64)


def constant_weight_value(log_ratio, advantage):
    """What a loss with a detached, capped ratio ascends, for one token."""
    return advantage * torch.where(
        log_ratio < math.log(1.0 + HIGH),
        log_ratio.exp(),
        (1.0 + HIGH) * log_ratio,
    )


def both_gradients(function, at):
    """By autograd and by central differences, of the sum."""
    leaf = at.clone().requires_grad_()
    (exact,) = torch.autograd.grad(function(leaf).sum(), leaf)
    numeric = torch.zeros_like(at)
    for place in range(at.shape[1]):
        moved = torch.zeros_like(at)
        moved[0, place] = STEP
        rise = function(at + moved).sum() - function(at - moved).sum()
        numeric[0, place] = rise / (2.0 * STEP)
    return exact, numeric


@for_each("kind", table.LOSSES)
def test_the_gradient_of_a_loss_is_its_slope_on_both_sides_of_every_clamp(kind):
    widths = {"clip_low": LOW, "clip_high": HIGH}
    own = {name: value for name, value in widths.items() if name in table.LOSSES[kind].model_fields}
    settings = LossSettings(kind=kind, **own)
    entropy = torch.full((1, TOKENS), 0.5, dtype=torch.float64)
    plan = table.plan(settings, entropy, ALL, vocabulary=8)
    loss = table.find(settings)
    for point in POINTS:
        old = torch.full((1, TOKENS), LIKELY - max(0.0, point), dtype=torch.float64)
        for advantage in (-1.5, 2.0):
            advantages = torch.full((1, TOKENS), advantage, dtype=torch.float64)

            def objective(logprobs, old=old, advantages=advantages):
                return loss.objective(logprobs, old, advantages, plan)[0]

            # All tokens alike: so the ratio of a group has the slope that its tokens share.
            exact, numeric = both_gradients(objective, old + point)
            if kind == "cispo":
                _, numeric = both_gradients(
                    lambda gap, sign=advantage: constant_weight_value(gap, sign),
                    torch.full((1, TOKENS), min(point, MAX_LOG_RATIO), dtype=torch.float64),
                )
                numeric = numeric * plan.weights_NT

            assert torch.allclose(exact, numeric, rtol=1e-4, atol=1e-6), (point, advantage)


@for_each("gap", [-14.0, -10.01, -9.99, -0.5, 9.99, 10.01, 14.0, MAX_GAP - 1.0])
@for_each("moved", [-1.0, 0.0, 1.0])
def test_the_gradient_of_the_kl_penalty_is_its_slope_at_any_distance(gap, moved):
    reference, weights = OLD + moved + gap, torch.ones(1, TOKENS)

    def penalty(logprobs):
        return kl_penalty(logprobs, OLD, reference, weights)

    exact, numeric = both_gradients(penalty, OLD + moved)

    # ratio k3 = e^(ref - old) - ratio (1 + gap), of which the first part does not move.
    assert -math.exp(moved) * gap == pytest.approx(float(exact[0, 0]))
    if gap < MAX_LOG_RATIO + 5.0:  # beyond, the differences drown in the value
        assert torch.allclose(exact, numeric, rtol=1e-3)


def test_the_kl_penalty_pulls_towards_the_reference_beyond_both_clamps():
    for moved in (-30.0, 9.99, 10.01, 30.0):
        for gap in (-80.0, -1.0, 1.0, 80.0):
            logprobs = (OLD + moved).float().requires_grad_()
            penalty = kl_penalty(logprobs, OLD.float(), logprobs.detach() + gap, torch.ones(1, 1))
            (slope,) = torch.autograd.grad(penalty.sum(), logprobs)
            pull = math.exp(min(moved, MAX_LOG_RATIO)) * abs(gap)

            assert penalty.isfinite().all()
            assert -math.copysign(pull, gap) == pytest.approx(float(slope[0, 0]), rel=1e-3)


@for_each("term", [TIS(), IcePop(cap=2.0)])
@for_each("point", [-12.0, math.log(0.49), math.log(0.51), 0.69, 0.7, 12.0])
def test_a_correction_weighs_and_has_no_gradient_of_its_own(term, point):
    trainer = (OLD + point).requires_grad_()

    weights = term.weigh(signal_of(ALL, rollout_prompt_NT=trainer, rollout_NT=OLD)).weights_NT

    ratio = math.exp(point)
    inside = 0.5 <= ratio <= 2.0
    expected = ratio * inside if isinstance(term, IcePop) else min(ratio, 2.0)
    assert not weights.requires_grad
    assert [expected] * TOKENS == pytest.approx(weights[0].tolist())
