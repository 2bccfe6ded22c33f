"""A divided head gives what one head gives, values and gradients."""

import pytest
import torch

from tasks.engines.trainer_megatron import vocabulary
from tasks.engines.trainer_megatron.vocabulary import sharded_scores, vocabulary_slice
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.heads_of_world import slice_scores

TOKENS = 23


def problem():
    generator = torch.Generator().manual_seed(0)
    hidden_RH = torch.randn(9, 6, generator=generator)
    head_VH = torch.randn(TOKENS, 6, generator=generator)
    tokens_R = torch.randint(0, TOKENS, (9,), generator=generator)
    return hidden_RH, head_VH, tokens_R


def whole_head(hidden_RH, head_VH, tokens_R):
    hidden_RH, head_VH = hidden_RH.clone().requires_grad_(), head_VH.clone().requires_grad_()
    reference = torch.distributions.Categorical(logits=hidden_RH @ head_VH.T / 0.7)
    one, other = reference.log_prob(tokens_R), reference.entropy()
    (one.sin().sum() + other.cos().sum()).backward()
    return one.detach(), other.detach(), hidden_RH.grad, head_VH.grad


@pytest.mark.parametrize("chunk", [2**24, 50])
def test_one_rank_that_holds_all_agrees_with_autograd(monkeypatch, chunk):
    monkeypatch.setattr(vocabulary, "CHUNK_LOGITS", chunk)
    hidden_RH, head_VH, tokens_R = problem()
    expected = whole_head(hidden_RH, head_VH, tokens_R)
    hidden_RH.requires_grad_()
    head_VH.requires_grad_()
    share = vocabulary_slice(TOKENS, TOKENS, 0, None)
    one, other = sharded_scores(hidden_RH, head_VH, tokens_R, 0.7, share, with_entropy=True)
    (one.sin().sum() + other.cos().sum()).backward()

    for wanted, found in zip(expected, (one, other, hidden_RH.grad, head_VH.grad), strict=True):
        assert torch.allclose(wanted, found, atol=1e-5)


def test_no_response_has_no_scores_and_a_gradient_of_zero():
    hidden_RH, head_VH, tokens_R = problem()
    hidden_RH, head_VH = hidden_RH[:0].requires_grad_(), head_VH.requires_grad_()
    share = vocabulary_slice(TOKENS, TOKENS, 0, None)
    scores_R, _ = sharded_scores(hidden_RH, head_VH, tokens_R[:0], 1.0, share, with_entropy=False)
    scores_R.sum().backward()

    assert not head_VH.grad.any()


def test_a_slice_excludes_its_padding():
    assert [8, 8, 7] == [vocabulary_slice(TOKENS, 8, rank, None).real for rank in range(3)]
    assert 0 == vocabulary_slice(TOKENS, 12, 2, None).real


@pytest.mark.engines
@pytest.mark.parametrize("padded", [24, 46])
def test_two_slices_agree_with_one_head_and_padding_has_no_gradient(padded):
    expected = whole_head(*problem())
    found = run_world(slice_scores, 2, *problem(), padded)

    for rank in found:
        for wanted, value in zip(expected[:3], rank[:3], strict=True):
            assert torch.allclose(wanted, value, atol=1e-5)
    slope_VH = torch.cat([rank[3] for rank in found])
    assert torch.allclose(expected[3], slope_VH[:TOKENS], atol=1e-5)
    assert not slope_VH[TOKENS:].any()
