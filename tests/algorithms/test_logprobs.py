import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.algorithms import logprobs


def test_log_probs_and_entropies_agree_with_torch_distributions():
    logits = torch.randn(7, 11, dtype=torch.float32, generator=torch.Generator().manual_seed(0)) * 3
    tokens = torch.arange(7)
    reference = torch.distributions.Categorical(logits=logits / 0.7)

    # A head of the identity: the hidden states are the logits.
    found, entropy = logprobs.scores_from_hidden(logits, torch.eye(11), tokens, 0.7)

    assert torch.allclose(reference.log_prob(tokens), found, atol=1e-5)
    assert torch.allclose(reference.entropy(), entropy, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_chunks_change_nothing(rows, monkeypatch):
    hidden, head = torch.randn(rows, 4), torch.randn(9, 4)
    tokens = torch.arange(rows)
    whole = logprobs.scores_from_hidden(hidden, head, tokens, 1.0)
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 18)
    chunked = logprobs.scores_from_hidden(hidden, head, tokens, 1.0)

    assert torch.allclose(whole[0], chunked[0])
    assert torch.allclose(whole[1], chunked[1])
    assert (rows,) == tuple(chunked[1].shape)


def test_a_certain_token_has_zero_entropy():
    logits = torch.tensor([[1e4, 0.0, 0.0]])

    _, entropy = logprobs.scores_from_hidden(logits, torch.eye(3), torch.tensor([0]), 1.0)

    assert 0.0 == float(entropy)


def reference_scores(hidden, head, tokens, temperature):
    reference = torch.distributions.Categorical(logits=hidden @ head.T / temperature)
    return reference.log_prob(tokens), reference.entropy()


@pytest.mark.parametrize("rows_at_once", [1, 2, 7])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_chunked_gradients_are_those_of_the_whole(rows_at_once, temperature, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    hidden, head = (torch.randn(n, 4, generator=generator).requires_grad_() for n in (7, 9))
    tokens = torch.randint(0, 9, (7,), generator=generator)
    slopes = torch.randn(2, 7, generator=generator)
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 9 * rows_at_once)

    def slopes_of(scores):
        total = (scores[0] * slopes[0]).sum() + (scores[1] * slopes[1]).sum()
        return torch.autograd.grad(total, (hidden, head))

    whole = reference_scores(hidden, head, tokens, temperature)
    chunked = logprobs.trainable_scores(hidden, head, tokens, temperature, with_entropy=True)

    for one, other in zip(
        [*whole, *slopes_of(whole)], [*chunked, *slopes_of(chunked)], strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_entropy_that_nobody_asked_for_is_not_computed():
    hidden, head = torch.randn(3, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    tokens = torch.arange(3)

    found, entropy = logprobs.trainable_scores(hidden, head, tokens, 1.0, with_entropy=False)
    expected, _ = reference_scores(hidden, head, tokens, 1.0)
    slopes = torch.autograd.grad(found.sum(), (hidden, head))

    assert not entropy.any()
    for one, other in zip(torch.autograd.grad(expected.sum(), (hidden, head)), slopes, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


class LargestTensors(TorchDispatchMode):
    """Counts tensors of at least so many elements that operations make."""

    def __init__(self, elements):
        super().__init__()
        self.elements, self.made = elements, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        fresh = isinstance(result, torch.Tensor) and not any(
            isinstance(one, torch.Tensor) and one.data_ptr() == result.data_ptr() for one in args
        )
        self.made += fresh and result.numel() >= self.elements
        return result


def test_no_pass_ever_makes_a_tensor_of_all_logits(monkeypatch):
    rows, vocabulary = 64, 100
    hidden = torch.randn(rows, 8, requires_grad=True)
    head = torch.randn(vocabulary, 8, requires_grad=True)
    tokens = torch.zeros(rows, dtype=torch.int64)
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 8 * vocabulary)

    with LargestTensors(rows * vocabulary) as naive:
        sum(score.sum() for score in reference_scores(hidden, head, tokens, 1.0)).backward()
    with LargestTensors(8 * vocabulary + 1) as chunked:
        scores = logprobs.trainable_scores(hidden, head, tokens, 1.0, with_entropy=True)
        sum(score.sum() for score in scores).backward()

    assert naive.made > 5
    assert 0 == chunked.made


def test_a_second_backward_computes_again_what_the_first_used_up():
    hidden, head = torch.randn(3, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    scores, _ = logprobs.trainable_scores(hidden, head, torch.arange(3), 1.0, with_entropy=False)

    first = torch.autograd.grad(scores.sum(), (hidden, head), retain_graph=True)
    second = torch.autograd.grad(scores.sum(), (hidden, head))

    assert all(torch.allclose(one, other) for one, other in zip(first, second, strict=True))
