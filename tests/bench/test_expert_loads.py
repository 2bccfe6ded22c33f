"""The load of expert-parallel ranks, on counts worked by hand."""

import numpy as np
import pytest

from tasks.algorithms.packing import nothing_shared
from tests.bench.engines import training_batch
from tests.bench.expert_loads import expert_counts, recorded, unevenness

ONE, OTHER, NONE = [[4, 0]], [[0, 4]], [[0, 0]]
"""Counts of a micro-batch with one layer and two experts."""


def test_a_micro_batch_takes_as_long_as_its_fullest_rank():
    # In each of the first two micro-batches both ranks use one expert: 8 on it, a mean of 4.
    assert (2.0, 1.0) == unevenness(np.array([[ONE, OTHER], [ONE, OTHER]]))
    assert (1.0, 1.0) == unevenness(np.array([[ONE, OTHER], [OTHER, ONE]]))


def test_a_filler_computes_nothing():
    assert (1.5, 1.0) == unevenness(np.array([[[[4, 4]], ONE], [OTHER, NONE]]))


@pytest.mark.parametrize("seed", range(5))
def test_no_packing_is_below_the_whole_batch(seed):
    found, bound = unevenness(np.random.default_rng(seed).integers(0, 9, (2, 6, 3, 4)))

    assert found >= bound >= 1.0


def test_every_fed_token_uses_its_experts_and_a_shared_one_once():
    rollouts, experts = recorded(1, 2, 4)
    batch, division = training_batch(rollouts), [[tuple(range(len(rollouts))), ()]]
    alone = expert_counts(rollouts, division, nothing_shared(len(rollouts)), experts)
    prefixes = batch.prefixes
    once = expert_counts(rollouts, [[prefixes.order, ()]], prefixes, experts)
    lengths = batch.lengths_N.tolist()
    fed = sum(lengths) - len(lengths)  # a last token is not fed
    pairs = zip(prefixes.order, prefixes.shared, strict=True)
    shared = sum(min(count, lengths[sequence] - 1) for sequence, count in pairs)

    assert shared > sum(len(one.prompt_tokens) for one in rollouts[::2]) / 2
    assert [[2 * fed] * 3, [0] * 3] == alone.sum(-1)[0].tolist()
    assert [[2 * (fed - shared)] * 3, [0] * 3] == once.sum(-1)[0].tolist()
