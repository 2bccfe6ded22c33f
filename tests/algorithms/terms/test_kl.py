import math

import pytest
import torch

from tasks.algorithms.terms.kl import k3, kl_penalty

GENERATOR = torch.Generator().manual_seed(0)
LOGITS, OLD, REFERENCE = torch.randn(3, 7, generator=GENERATOR, dtype=torch.float64)


def log(logits):
    return torch.log_softmax(logits, dim=0)


def divergence(first, second):
    return (first.exp() * (first - second)).sum()


def expected_penalty(logits, old_logits, weights=1.0):
    """The mean of the penalty over all tokens, drawn from the old policy."""
    logprobs, old = log(logits), log(old_logits)
    chances = old.detach().exp() * weights
    return kl_penalty(logprobs[None], old[None], log(REFERENCE)[None], chances[None]).sum()


def test_k3_is_zero_at_the_reference_and_positive_elsewhere():
    assert not k3(log(LOGITS), log(LOGITS)).any()
    assert (k3(log(LOGITS), log(REFERENCE)) > 0).all()
    assert 0.5 - math.log(1.5) == pytest.approx(
        float(k3(torch.tensor(0.0), torch.tensor(math.log(1.5))))
    )


@pytest.mark.parametrize("old", [LOGITS, OLD], ids=["on-policy", "off-policy"])
def test_its_mean_and_gradient_are_those_of_the_divergence(old):
    logits = LOGITS.clone().requires_grad_()
    exact = divergence(log(logits), log(REFERENCE))
    (exact_slope,) = torch.autograd.grad(exact, logits)

    found = expected_penalty(logits, old)
    (slope,) = torch.autograd.grad(found, logits)

    assert exact.item() == pytest.approx(found.item())
    assert torch.allclose(exact_slope, slope)


def test_without_the_ratio_the_gradient_would_be_another_divergences():
    logits = LOGITS.clone().requires_grad_()
    chances = log(LOGITS).exp()
    (plain,) = torch.autograd.grad((chances * k3(log(logits), log(REFERENCE))).sum(), logits)
    (other,) = torch.autograd.grad(divergence(log(REFERENCE), log(logits)), logits)

    assert torch.allclose(other, plain)


def test_tokens_without_weight_are_not_looked_at():
    logprobs = torch.tensor([[-1.0, float("nan")]], requires_grad=True)
    other = torch.tensor([[-1.5, 0.0]])

    penalty = kl_penalty(logprobs, logprobs.detach(), other, torch.tensor([[1.0, 0.0]]))
    penalty.sum().backward()

    assert math.expm1(-0.5) + 0.5 == pytest.approx(penalty.item())
    assert 0.0 == float(logprobs.grad[0, 1])
