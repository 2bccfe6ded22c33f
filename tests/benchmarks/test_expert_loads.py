"""The load of expert-parallel ranks, on counts worked by hand."""

import numpy as np
import pytest

from tasks.benchmarks.expert_loads import expert_counts, recorded, unevenness

COUNTS = np.array([[[4, 0]], [[0, 4]], [[4, 0]], [[0, 4]]])
"""Four sequences, one layer, two experts: each sequence uses one of them."""


def test_a_micro_batch_takes_as_long_as_its_fullest_rank():
    # Sequences 0 and 2 together use expert 0 alone: 8 on one rank, a mean of 4.
    assert (2.0, 1.0) == unevenness(COUNTS, [[(0,), (1,)], [(2,), (3,)]])
    assert (1.0, 1.0) == unevenness(COUNTS, [[(0,), (1,)], [(3,), (2,)]])


def test_a_filler_computes_nothing():
    assert (1.5, 1.0) == unevenness(COUNTS, [[(0, 1), (2,)], [(3,), ()]])


@pytest.mark.parametrize("seed", range(5))
def test_no_packing_is_below_the_whole_batch(seed):
    draws = np.random.default_rng(seed)
    counts = draws.integers(0, 9, (12, 3, 4))
    order = draws.permutation(12).tolist()

    found, bound = unevenness(counts, [[order[:3], order[3:6]], [order[6:9], order[9:]]])

    assert found >= bound >= 1.0


def test_every_fed_token_uses_its_experts():
    rollouts, experts = recorded(1, 1, 4)
    counts = expert_counts(rollouts, experts)

    fed = [len(one.prompt_tokens) + len(one.response_tokens) - 1 for one in rollouts]
    assert [[2 * tokens] * 3 for tokens in fed] == counts.sum(-1).tolist()
