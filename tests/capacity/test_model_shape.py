"""Counting parameters: against models that exist, and of ranks against the whole."""

import json
from dataclasses import replace
from math import prod

import pytest
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

from data_schemas.machine_settings import LayoutSettings
from tasks.capacity.model_shape import (
    COMPASSMAX,
    LING_LITE,
    QWEN2_5_7B,
    QWEN3_15B_A2B,
    DataGroupSizes,
    buffer_elements,
    owned_elements,
    rank_tensors,
    ranks_of,
    shape_of,
)
from tasks.errors import DataError, SettingsError
from tasks.models.weights import Weights
from tests.engines.families import CONFIGS, write_family

QWEN3_30B_A3B = replace(QWEN3_15B_A2B, layers=48)
SMALL = replace(QWEN3_15B_A2B, layers=4, vocabulary=1024)


def test_parameters_are_those_of_a_model_that_was_built(tiny_moe):
    built = AutoModelForCausalLM.from_pretrained(tiny_moe)
    geometry = shape_of(json.loads((tiny_moe / "config.json").read_text()))

    assert sum(p.numel() for p in built.parameters()) == geometry.parameters
    assert 8 == geometry.experts
    assert geometry.tied


def test_tensors_are_those_of_the_files(tiny_moe):
    shape = shape_of(json.loads((tiny_moe / "config.json").read_text()))
    with Weights(tiny_moe) as weights:
        in_files = list(weights.file_of)

    assert len(in_files) == shape.tensors
    assert 18_867 == QWEN3_30B_A3B.tensors
    assert 339 == QWEN2_5_7B.tensors


def test_experts_of_another_size_are_counted_and_divided_as_the_others():
    shape = replace(SMALL, extra_experts=4, extra_width=32, extra_active=1.5)

    assert shape.parameters - SMALL.parameters == 4 * 4 * 3 * 2048 * 32
    assert shape.active_parameters - SMALL.active_parameters == round(4 * 1.5 * 3 * 2048 * 32)
    halves = rank_tensors(shape, LayoutSettings(expert=2), 0)
    assert shape.parameters == sum(halves.shared) + 2 * sum(halves.expert)
    with pytest.raises(SettingsError, match=r"expert \(extra experts\): 4 is not a multiple of 8"):
        rank_tensors(shape, LayoutSettings(expert=8), 0)


def test_published_counts_come_out():
    assert 30_532_122_624 == QWEN3_30B_A3B.parameters
    assert 7_615_616_512 == QWEN2_5_7B.parameters
    assert 3.3 == pytest.approx(QWEN3_30B_A3B.active_parameters / 1e9, abs=0.06)
    assert 245 == pytest.approx(COMPASSMAX.parameters / 1e9, abs=0.5)
    assert 71 == pytest.approx(COMPASSMAX.active_parameters / 1e9, abs=0.5)


def test_the_small_geometry_is_what_transformers_describes_by_default():
    config = Qwen3MoeConfig()
    # The class has no default for it; every released Qwen3 has 128.
    described = config.to_dict() | {"head_dim": 128, "num_experts": config.num_experts}

    assert shape_of(described) == QWEN3_15B_A2B


@pytest.mark.parametrize(
    "layout",
    [
        LayoutSettings(),
        LayoutSettings(tensor=2, pipeline=2, expert=8),
        LayoutSettings(tensor=4, pipeline=4, expert=2),
    ],
    ids=["one rank", "all kinds", "another"],
)
def test_all_ranks_together_hold_the_model_once_but_for_what_every_rank_needs(layout):
    stages = [rank_tensors(SMALL, layout, stage) for stage in range(layout.pipeline)]
    expert = sum(sum(stage.expert) for stage in stages) * layout.expert
    shared = sum(sum(stage.shared) for stage in stages) * layout.tensor
    norms = 2 * SMALL.hidden + 2 * SMALL.head_size + SMALL.experts * SMALL.hidden
    everywhere = SMALL.layers * norms + SMALL.hidden

    assert SMALL.parameters == expert + shared - (layout.tensor - 1) * everywhere


def test_a_tied_head_is_a_copy_of_its_own_on_the_last_of_several_stages():
    tied = replace(SMALL, tied=True)
    table = tied.vocabulary * tied.hidden
    two = LayoutSettings(pipeline=2)

    assert table == rank_tensors(tied, two, 1).shared[-1]
    assert tied.hidden == rank_tensors(tied, LayoutSettings(), 0).shared[-1]


def test_a_buffer_is_padded_for_alignment_and_for_equal_parts():
    # 100 begins at 0 and 70 at 128 = 2 x 64; both end at 198, and 384 = 3 x 128.
    assert 384 == buffer_elements([70, 100], 3)
    assert [100, 70, 0] == owned_elements([70, 100], 3)
    assert 0 == buffer_elements([], 3)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_every_element_has_one_owner(ranks):
    sizes = [1, 64, 1000, 65, 7, 4096]

    owned = owned_elements(sizes, ranks)

    assert sum(sizes) == sum(owned)
    assert buffer_elements(sizes, ranks) // ranks >= max(owned)


def test_expert_data_parallel_ranks_are_what_experts_leave():
    layout = LayoutSettings(tensor=8, pipeline=8, expert=16)

    # 256 / (8 x 8) ranks have the same shard of attention, 256 / (16 x 8) the same experts.
    assert DataGroupSizes(data=4, expert_data=2) == ranks_of(layout, 256)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"tensor": 3}, "32 is not a multiple of 3"),
        ({"pipeline": 3}, "4 is not a multiple of 3"),
        ({"expert": 3}, "128 is not a multiple of 3"),
    ],
)
def test_a_model_that_cannot_be_divided_so_is_refused(layout, message):
    with pytest.raises(SettingsError, match=message):
        rank_tensors(SMALL, LayoutSettings(**layout), 0)


def test_gpus_that_do_not_divide_are_refused():
    with pytest.raises(SettingsError, match="12 training GPUs are not a multiple"):
        ranks_of(LayoutSettings(tensor=8), 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mlp_only_layers": [1]}, "dense layers behind others with experts"),
        ({"vocab_size": "many"}, "vocab_size 'many'; it must be a whole number"),
    ],
)
def test_a_config_that_says_too_little_is_refused(tiny_moe, change, message):
    config = json.loads((tiny_moe / "config.json").read_text())

    with pytest.raises(DataError, match=message):
        shape_of(config | change)


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "deepseek_v3"])
def test_the_parameters_of_every_family_are_those_of_its_model(name, tiny_moe, tmp_path):
    folder = write_family(name, tiny_moe, tmp_path / "model", num_nextn_predict_layers=0)
    config = json.loads((folder / "config.json").read_text())
    if name == "qwen3_moe mixed":
        with pytest.raises(DataError, match="dense layers behind others with experts"):
            shape_of(config)
        return
    with Weights(folder) as weights:
        sizes = {key: prod(weights.shape(key)) for key in weights.file_of}
    # The gate of the shared expert is a row; the bias of a router is no parameter.
    counted = sum(
        size
        for key, size in sizes.items()
        if not key.endswith(("shared_expert_gate.weight", "expert_bias", "correction_bias"))
    )

    shape = shape_of(config)

    assert counted == shape.parameters
    assert counted == rank_tensors(shape, LayoutSettings(), 0).total


def test_ling_lite_has_the_parameters_that_were_published():
    assert 16.80 == pytest.approx(LING_LITE.parameters / 1e9, abs=0.005)
    assert 2.75 == pytest.approx(LING_LITE.active_parameters / 1e9, abs=0.005)
