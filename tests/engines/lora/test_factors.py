"""Names of LoRA's factors and their merge."""

import pytest
import torch

from tasks.engines.lora.factors import describe, factor_names, is_adapted, merge, merged


def test_a_merge_worked_by_hand():
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a, b = torch.tensor([[1.0, -1.0]]), torch.tensor([[0.5], [0.0], [0.25]])

    # alpha / r = 32, so 32 * 0.5 * (1, -1) is added to the first row and half of it to the last.
    assert [[17.0, -14.0], [3.0, 4.0], [13.0, -2.0]] == merge(weight, a, b).tolist()


def test_a_merge_of_bf16_weights_is_not_rounded_to_bf16():
    weight, small = torch.ones(1, 1, dtype=torch.bfloat16), torch.full((1, 1), 2.0**-8)

    assert 1.0 + 32 * 2.0**-16 == float(merge(weight, small, small))


@pytest.mark.parametrize(
    ("name", "adapted"),
    [
        ("model.layers.0.self_attn.q_proj.weight", True),
        ("model.layers.0.mlp.experts.7.down_proj.weight", True),
        ("model.layers.0.mlp.gate.weight", False),
        ("model.layers.0.self_attn.q_proj.bias", False),
        ("model.layers.0.self_attn.q_norm.weight", False),
        ("model.embed_tokens.weight", False),
        ("lm_head.weight", False),
    ],
)
def test_projections_are_adapted_and_routers_norms_and_embeddings_are_not(name, adapted):
    assert adapted == is_adapted(name)


def test_only_adapted_tensors_are_merged():
    names = ("a.up_proj.weight", "b.norm.weight")
    tensors = [(name, torch.zeros(1, 1)) for name in names]
    factors = dict.fromkeys(factor_names(names[0]), torch.ones(1, 1))

    assert [(names[0], 32.0), (names[1], 0.0)] == [
        (name, float(tensor)) for name, tensor in merged(tensors, factors)
    ]


def test_a_statement_says_rank_alpha_and_targets_and_nothing_without_adapters():
    assert {} == describe(0)
    assert describe(8)["lora"].startswith("rank 8, alpha 32, of q_proj, k_proj, ")
