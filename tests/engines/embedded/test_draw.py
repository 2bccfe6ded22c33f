"""Randomness belongs to the sequence; tokens follow the distribution they are drawn from."""

import numpy as np
import pytest
import torch
from transformers import LogitsProcessorList, MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tasks.engines.embedded.sampling import draw, stream_key, truncate, uniforms


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

    tokens, logprobs, _ = draw(
        logits.expand(count, -1), temperature, uniforms(keys, np.arange(count))
    )

    expected = (logits / temperature).softmax(0)
    assert torch.allclose(expected, tokens.bincount(minlength=4) / count, atol=0.01)
    assert torch.allclose(expected.log()[tokens], logprobs)


def test_greedy_decoding_draws_the_likeliest_token_at_temperature_one():
    logits = torch.tensor([[0.0, 3.0, 1.0]])

    token, logprob, _ = draw(logits, 0.0, np.array([0.99]))

    assert [1] == token.tolist()
    assert logits.log_softmax(1)[0, 1].item() == pytest.approx(logprob.item())


def spread_logits():
    """Flat, peaked and tied distributions over 300 tokens."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 300, generator=generator) * torch.logspace(-1, 1, 64)[:, None]
    return torch.cat([logits, logits.round(), torch.zeros(1, 300)])


@pytest.mark.parametrize(
    ("top_p", "min_p", "top_k"),
    [
        (0.95, 0.0, 0),
        (0.3, 0.0, 0),
        (1e-6, 0.0, 0),
        (1.0, 0.1, 0),
        (1.0, 0.9, 0),
        (0.8, 0.05, 0),
        (1.0, 0.0, 20),
        (0.83, 0.0, 20),
        (0.91, 0.02, 7),
        (1.0, 0.0, 1000),
    ],
)
def test_the_truncated_distribution_is_that_of_transformers(top_p, min_p, top_k):
    """Among tokens that tie, transformers keeps any; here the one with the higher id is kept.

    Of those that tie with the last of top-k all are kept, in both.
    """
    logits = spread_logits()
    warpers = LogitsProcessorList()
    if min_p:
        warpers.append(MinPLogitsWarper(min_p))
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        warpers.append(TopPLogitsWarper(top_p))
    ids = torch.LongTensor(len(logits), 1)
    expected = warpers(ids, logits).log_softmax(1)

    found = truncate(logits.log_softmax(1), top_p, min_p, top_k)

    assert torch.equal(expected.isfinite().sum(1), found.isfinite().sum(1))
    assert torch.allclose(expected.exp().sort(1).values, found.exp().sort(1).values, atol=1e-6)
    assert torch.allclose(expected[:64].exp(), found[:64].exp(), atol=1e-6)


def test_only_the_support_is_drawn_with_the_log_probs_of_the_truncated_distribution():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    count = 20_000
    keys = np.full(count, stream_key(0, "p", 0), dtype=np.uint64)
    numbers = uniforms(keys, np.arange(count))

    tokens, logprobs, over = draw(logits.expand(count, -1), 1.0, numbers, top_p=0.7)

    assert {0, 1} == set(tokens.tolist())
    assert [True, True, False, False] == (over[0] > -torch.inf).tolist()
    expected = torch.tensor([0.625, 0.375])
    assert torch.allclose(expected, tokens.bincount() / count, atol=0.01)
    assert torch.allclose(expected.log()[tokens], logprobs)


def test_top_p_one_and_min_p_zero_change_no_bit_of_a_draw():
    logits, numbers = spread_logits(), np.linspace(0.0, 0.999, 129)
    for temperature in (0.0, 0.7, 1.0):
        plain = draw(logits, temperature, numbers)
        whole = draw(logits, temperature, numbers, top_p=1.0, top_k=0, min_p=0.0)

        assert all(torch.equal(one, other) for one, other in zip(plain, whole, strict=True))


def test_a_truncated_draw_depends_on_the_sequence_alone():
    logits, numbers = spread_logits(), np.linspace(0.0, 0.999, 129)
    tokens, logprobs, _ = draw(logits, 1.0, numbers, top_p=0.9, min_p=0.01)

    for row in (0, 77, 128):
        alone = draw(logits[row : row + 1], 1.0, numbers[row : row + 1], top_p=0.9, min_p=0.01)
        assert (tokens[row], logprobs[row]) == (alone[0][0], alone[1][0])


def test_greedy_decoding_truncates_nothing():
    logits = torch.tensor([[0.0, 3.0, 1.0]])

    plain = draw(logits, 0.0, np.zeros(1))
    whole = draw(logits, 0.0, np.zeros(1), top_p=0.1, top_k=1, min_p=0.5)

    assert all(map(torch.equal, plain, whole))
