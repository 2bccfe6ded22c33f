"""Which tensors make which parameter, and how they are laid out in it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.engines.trainer_megatron.names import (
    Fusion,
    all_parts,
    canonical,
    expert_slots,
    fuse,
    layer_slots,
    split,
)

BASE_MODEL = Path("tasks/training/foundation/base_model")


def test_queries_keys_and_values_alternate_by_key_value_head():
    # 4 query heads of size 2 on 2 key-value heads: rows are numbered by what they are.
    query = torch.arange(8.0)[:, None]
    key, value = 10 + torch.arange(4.0)[:, None], 20 + torch.arange(4.0)[:, None]
    fused = fuse(Fusion.QKV, [query, key, value], head_size=2)

    assert [0, 1, 2, 3, 10, 11, 20, 21, 4, 5, 6, 7, 12, 13, 22, 23] == fused[:, 0].tolist()


def test_a_rank_s_shards_make_its_own_rows_of_the_whole():
    query = torch.randn(8, 3)
    key, value = torch.randn(4, 3), torch.randn(4, 3)
    whole = fuse(Fusion.QKV, [query, key, value], head_size=2)
    ranks = [
        fuse(Fusion.QKV, [part.chunk(2)[rank] for part in (query, key, value)], head_size=2)
        for rank in range(2)
    ]

    assert torch.equal(whole, torch.cat(ranks))


@pytest.mark.parametrize("fusion", Fusion)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_splitting_a_fused_weight_restores_its_parts(fusion, columns):
    geometry = replace(read_geometry(BASE_MODEL), heads=4, groups=2, head_size=2)
    rows = {Fusion.WHOLE: [8], Fusion.GATE_UP: [6, 6], Fusion.QKV: [8, 4, 4]}[fusion]
    parts = [torch.randn(count, *columns) for count in rows]
    again = split(fusion, fuse(fusion, parts, head_size=2), geometry)

    assert len(parts) == len(again)
    assert all(torch.equal(one, other) for one, other in zip(parts, again, strict=True))


@pytest.mark.parametrize(
    ("engine", "local"),
    [
        ("decoder.layers.1.self_attention.linear_qkv.layer_norm_weight", "input_layernorm.weight"),
        ("decoder.layers.1.mlp.linear_fc1.layer_norm_weight", "pre_mlp_layernorm.weight"),
        ("decoder.layers.1.pre_mlp_layernorm.weight", "pre_mlp_layernorm.weight"),
        (
            "decoder.layers.1.mlp.experts.linear_fc2.weight13",
            "mlp.experts.local_experts.13.linear_fc2.weight",
        ),
        ("decoder.layers.1.mlp.linear_fc1.weight", "mlp.linear_fc1.weight"),
    ],
)
def test_transformer_engine_s_names_are_those_of_the_local_spec(engine, local):
    assert f"decoder.layers.1.{local}" == canonical(engine)
    assert f"decoder.layers.1.{local}" == canonical(f"module.module.{engine}")


def test_every_tensor_of_the_file_is_named_once_and_shaped_right():
    geometry = read_geometry(BASE_MODEL)
    parts = [part for part, _ in all_parts(geometry)]
    with safe_open(BASE_MODEL / "model.safetensors", "pt") as opened:
        names = list(opened.keys())
        expected = {name: tuple(opened.get_slice(name).get_shape()) for name in names}

    assert len(expected) == len(parts)
    assert expected == {part.name: part.shape for part in parts}


def test_a_seat_on_a_rank_holds_an_expert_of_the_layer():
    geometry = read_geometry(BASE_MODEL)
    first, second = expert_slots(geometry, layer=2, place=0, expert=5, seat=1)

    assert "decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight" == first.parameter
    assert [
        "model.layers.2.mlp.experts.5.gate_proj.weight",
        "model.layers.2.mlp.experts.5.up_proj.weight",
    ] == [part.name for part in first.parts]
    assert "decoder.layers.0.mlp.experts.local_experts.1.linear_fc2.weight" == second.parameter
    assert first.divided is None


def test_a_router_and_norms_are_whole_on_every_rank():
    slots = layer_slots(read_geometry(BASE_MODEL), layer=0, place=0)
    whole = {slot.parameter.split(".", 3)[3] for slot in slots if slot.divided is None}

    assert {
        "mlp.router.weight",
        "input_layernorm.weight",
        "pre_mlp_layernorm.weight",
        "self_attention.q_layernorm.weight",
        "self_attention.k_layernorm.weight",
    } == whole
