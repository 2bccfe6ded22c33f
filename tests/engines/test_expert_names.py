"""Every expert has a name of its own in a weight sync, as in a file."""

import torch
from safetensors.torch import load_file

from tasks.engines.embedded.hf_model import load_model
from tasks.engines.expert_names import named_tensors, split_experts


def test_all_experts_of_a_layer_are_split_into_views():
    fused = torch.arange(2 * 6 * 5.0).reshape(2, 6, 5)
    parts = dict(split_experts("m.experts.gate_up_proj", fused))

    assert [
        "m.experts.0.gate_proj.weight",
        "m.experts.0.up_proj.weight",
        "m.experts.1.gate_proj.weight",
        "m.experts.1.up_proj.weight",
    ] == list(parts)
    assert torch.equal(fused[1, 3:], parts["m.experts.1.up_proj.weight"])
    parts["m.experts.1.up_proj.weight"].zero_()
    assert 0 == fused[1, 3:].sum()
    ((name, down),) = split_experts("m.experts.down_proj", fused[:1])
    assert ("m.experts.0.down_proj.weight", (6, 5)) == (name, tuple(down.shape))


def test_the_feed_forward_of_a_dense_layer_is_not_split():
    dense = torch.zeros(6, 5)
    assert [("m.mlp.gate_up_proj", dense)] == list(split_experts("m.mlp.gate_up_proj", dense))


def test_a_models_tensors_have_the_names_of_its_file(tiny_moe):
    theirs = load_file(tiny_moe / "model.safetensors")
    ours = dict(named_tensors(load_model(tiny_moe)))

    assert theirs.keys() == ours.keys()
    assert all(torch.equal(tensor, ours[name]) for name, tensor in theirs.items())
