"""A sequence that vLLM preempts, because its cache is full, is the one that it would have been."""
# ruff: noqa: E402, the skip stands before what needs vLLM

import pytest

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

import numpy as np

from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm import options
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine

SAMPLING = Sampling(max_new_tokens=40, temperature=1.0, seed=3)
BLOCKS = 6
"""Blocks of 32 tokens: four sequences of up to 60 tokens need eight, and with a prefix of 64
more."""
PREFIX = 64
"""Tokens that some prompts share: two blocks, whose routes vLLM keeps with the cached prefix."""


def answers(folder, requests):
    engine = VllmRolloutEngine(folder)
    rollouts = engine.generate(requests, SAMPLING)
    found = sorted(rollouts, key=lambda one: (one.problem_id, one.sample))
    counters, tokens = engine.counters, engine._backend.cache_tokens
    engine.close()
    return found, counters, tokens


def test_preempted_sequences_have_the_tokens_and_routes_of_those_that_were_not(
    served_moe, monkeypatch, caplog
):
    draw = np.random.default_rng(0)
    prompts = [draw.integers(0, 250, 20).astype(np.int32) for _ in range(4)]
    requests = [Request(f"p{place}", prompt, 1) for place, prompt in enumerate(prompts)]
    prefix, *tails = (draw.integers(0, 250, size).astype(np.int32) for size in (PREFIX, 9, 5, 12))
    shared = [np.concatenate([prefix, tail]) for tail in tails[:2]]
    requests += [
        Request("shared", shared[0], 2),
        Request("went on", shared[1], 1, response_tokens=tails[2]),
    ]

    expected, roomy, tokens = answers(served_moe, requests)
    small = options.CPU_CACHE_BYTES // (tokens // 32) * BLOCKS
    monkeypatch.setattr(options, "CPU_CACHE_BYTES", small)
    found, narrow, kept = answers(served_moe, requests)

    assert 0 == roomy.preemptions < narrow.preemptions
    assert kept < tokens
    assert f"preempted {narrow.preemptions} times" in caplog.text
    assert max(len(one.response_tokens) for one in found) > 12
    assert 7 == len(found)
    for one, other in zip(expected, found, strict=True):
        assert one.response_tokens.tolist() == other.response_tokens.tolist()
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)
        assert one.trace.experts_TLK.tolist() == other.trace.experts_TLK.tolist()
    *_, first, second, _ = found  # every sequence has the routes of the prefix, cached or not
    assert first.trace.experts_TLK[:PREFIX].tolist() == second.trace.experts_TLK[:PREFIX].tolist()
