import pytest
import torch

from tasks.algorithms import logprobs


def test_log_probs_and_entropies_agree_with_torch_distributions():
    logits = torch.randn(7, 11, dtype=torch.float32, generator=torch.Generator().manual_seed(0)) * 3
    tokens = torch.arange(7)
    reference = torch.distributions.Categorical(logits=logits / 0.7)

    assert torch.allclose(
        reference.log_prob(tokens), logprobs.token_logprobs(logits, tokens, 0.7), atol=1e-5
    )
    assert torch.allclose(reference.entropy(), logprobs.entropies(logits, 0.7), atol=1e-5)


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

    assert 0.0 == float(logprobs.entropies(logits, 1.0))
