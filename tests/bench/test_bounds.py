"""Which weights a token meets, and what a core is."""

import pytest
import torch

from tests.bench.bounds import acting_weights, machine


def test_an_expert_counts_by_the_share_of_tokens_that_it_computes():
    weights = {
        "model.embed_tokens.weight": torch.zeros(100, 4),
        "model.layers.0.mlp.experts.gate_up_proj": torch.zeros(8, 4, 10),
        "model.layers.0.self_attn.q_proj.weight": torch.zeros(4, 4),
        "lm_head.weight": torch.zeros(100, 4),
    }

    assert 320 / 4 + 16 + 400 == acting_weights(weights.items(), 0.25)


@pytest.mark.slow
def test_a_core_multiplies_faster_than_it_reads():
    core = machine()

    assert core.products_per_s > core.bytes_per_s > 0
