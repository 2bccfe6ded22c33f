"""Randomness belongs to the sequence; tokens follow the distribution they are drawn from."""

import numpy as np
import pytest
import torch

from tasks.engines.embedded.draw import draw, stream_key, uniforms


def test_a_stream_is_split_mix_64():
    """First outputs for seed 0, from the generator's reference implementation."""
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]

    found = uniforms(np.zeros(3, dtype=np.uint64), np.arange(3))

    assert [(value >> 11) * 2.0**-53 for value in expected] == found.tolist()


def test_seed_problem_and_sample_each_make_another_stream():
    keys = {stream_key(0, "a", 0), stream_key(1, "a", 0), stream_key(0, "b", 0)}

    assert 4 == len(keys | {stream_key(0, "a", 1)})


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_have_the_frequencies_of_the_tempered_distribution(temperature):
    logits = torch.tensor([0.0, 2.0, -torch.inf, 1.0])
    count = 40_000
    keys = np.full(count, stream_key(0, "p", 0), dtype=np.uint64)

    tokens, logprobs = draw(logits.expand(count, -1), temperature, uniforms(keys, np.arange(count)))

    expected = (logits / temperature).softmax(0)
    assert torch.allclose(expected, tokens.bincount(minlength=4) / count, atol=0.01)
    assert torch.allclose(expected.log()[tokens], logprobs)


def test_greedy_decoding_draws_the_likeliest_token_at_temperature_one():
    logits = torch.tensor([[0.0, 3.0, 1.0]])

    token, logprob = draw(logits, 0.0, np.array([0.99]))

    assert [1] == token.tolist()
    assert logits.log_softmax(1)[0, 1].item() == pytest.approx(logprob.item())
