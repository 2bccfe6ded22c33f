"""A divided head gives what one head gives, values and gradients."""

from types import SimpleNamespace

import pytest
import torch
from torch import distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from tasks.algorithms import logprobs
from tasks.algorithms.kept_sets import KeptTokens
from tasks.engines.trainer_megatron.vocabulary import (
    _ShardedScores,
    sharded_scores,
    vocabulary_slice,
)
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.heads_of_world import slice_scores

TOKENS = 23


def problem():
    generator = torch.Generator().manual_seed(0)
    hidden_RH = torch.randn(9, 6, generator=generator)
    head_VH = torch.randn(TOKENS, 6, generator=generator)
    tokens_R = torch.randint(0, TOKENS, (9,), generator=generator)
    return hidden_RH, head_VH, tokens_R


def sets(tokens_R) -> KeptTokens:
    """Every third token alone in its set; the others in sets that a slice may have no part of."""
    members = [
        sorted({token, *((token + step) % TOKENS for step in range(row % 3))})
        for row, token in enumerate(tokens_R.tolist())
    ]
    return KeptTokens(
        torch.tensor([token for one in members for token in one], dtype=torch.int32),
        torch.tensor(list(map(len, members))),
    )


def whole_head(hidden_RH, head_VH, tokens_R, kept):
    hidden_RH, head_VH = hidden_RH.clone().requires_grad_(), head_VH.clone().requires_grad_()
    logits_RV = hidden_RH @ head_VH.T / 0.7
    other = torch.distributions.Categorical(logits=logits_RV).entropy()
    if kept is not None:
        outside_RV = torch.ones(logits_RV.shape, dtype=torch.bool)
        rows = torch.arange(len(tokens_R)).repeat_interleave(kept.counts_R)
        outside_RV[rows, kept.ids.long()] = False
        logits_RV = logits_RV.masked_fill(outside_RV, -torch.inf)
    one = logits_RV.log_softmax(1).gather(1, tokens_R[:, None])[:, 0]
    (one.sin().sum() + other.cos().sum()).backward()
    return one.detach(), other.detach(), hidden_RH.grad, head_VH.grad


@pytest.mark.parametrize("make_sets", [lambda _: None, sets], ids=["all tokens", "sets"])
@pytest.mark.parametrize("chunk", [2**24, 50])
def test_one_rank_that_holds_all_agrees_with_autograd(monkeypatch, chunk, make_sets):
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", chunk)
    hidden_RH, head_VH, tokens_R = problem()
    kept = make_sets(tokens_R)
    expected = whole_head(hidden_RH, head_VH, tokens_R, kept)
    hidden_RH.requires_grad_()
    head_VH.requires_grad_()
    share = vocabulary_slice(TOKENS, TOKENS, 0, None)
    one, other = sharded_scores(
        hidden_RH, head_VH, tokens_R, 0.7, share, with_entropy=True, sets=kept
    )
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
@pytest.mark.parametrize("make_sets", [lambda _: None, sets], ids=["all tokens", "sets"])
@pytest.mark.parametrize("padded", [24, 46])
def test_two_slices_agree_with_one_head_and_padding_has_no_gradient(padded, make_sets):
    kept = make_sets(problem()[2])
    expected = whole_head(*problem(), kept)
    found = run_world(slice_scores, 2, *problem(), kept, padded)

    for rank in found:
        for wanted, value in zip(expected[:3], rank[:3], strict=True):
            assert torch.allclose(wanted, value, atol=1e-5)
    slope_VH = torch.cat([rank[3] for rank in found])
    assert torch.allclose(expected[3], slope_VH[:TOKENS], atol=1e-5)
    assert not slope_VH[TOKENS:].any()


@pytest.fixture(params=[1, 2])
def group(request):
    """None for a rank alone, else a group in which nothing is sent."""
    if request.param == 1:
        yield None
        return
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=request.param)
    yield distributed.group.WORLD
    distributed.destroy_process_group()


class Context(SimpleNamespace):
    """Context of a call without autograd, whose engine asks for the driver of a fake device."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


@pytest.mark.parametrize("chunk", [2**24, 50])
def test_on_a_gpu_nothing_of_scores_and_gradients_is_computed_on_the_cpu(monkeypatch, group, chunk):
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", chunk)
    columns = TOKENS if group is None else 12
    share, context = vocabulary_slice(TOKENS, columns, 0, group), Context()
    with FakeTensorMode():  # CUDA's refusals, without its kernels
        there = {"device": "cuda", "dtype": torch.bfloat16}
        hidden_RH, head_VH = torch.empty(9, 6, **there), torch.empty(columns, 6, **there)
        tokens_R = torch.empty(9, dtype=torch.int64, device="cuda")
        inputs = hidden_RH, head_VH, tokens_R, 0.7, share
        scores = _ShardedScores.forward(context, *inputs, True, None)
        slopes = _ShardedScores.backward(context, *map(torch.ones_like, scores))

    def facts(tensors):
        return [(one.device.type, one.dtype, tuple(one.shape)) for one in tensors]

    assert [("cuda", torch.float32, (9,))] * 2 == facts(scores)
    bf16 = "cuda", torch.bfloat16
    assert [(*bf16, (9, 6)), (*bf16, (columns, 6))] == facts(slopes[:2])
