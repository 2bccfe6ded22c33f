"""What is read from a config.json, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from data_schemas.machine_settings import LayoutSettings
from data_schemas.routing import Routing
from tasks.engines.trainer_megatron.geometry import Geometry, read_geometry
from tasks.errors import SettingsError

BASE_MODEL = Path("tasks/training/foundation/base_model")


def edited(folder: Path, **changes: object) -> Path:
    """A folder with a config.json that differs from the base model's."""
    config = json.loads((BASE_MODEL / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_base_model_is_read_as_it_is():
    expected = Geometry(
        family="qwen3_moe",
        layers=3,
        hidden=128,
        heads=4,
        groups=2,
        head_size=32,
        vocab=768,
        positions=512,
        dense_size=0,
        experts=8,
        top_k=2,
        expert_size=64,
        renormalised=True,
        norm_epsilon=1e-6,
        rope_theta=10000.0,
        tied=True,
        qk_norm=True,
        qkv_bias=False,
        dtype="bfloat16",
        routing=Routing(8, 2),
        moe_layers=(0, 1, 2),
    )

    assert expected == read_geometry(BASE_MODEL)


def test_names_of_older_files_mean_the_same(tmp_path):
    older = edited(tmp_path, rope_parameters=None, rope_theta=5e5, num_experts=8, dtype=None)

    assert replace(read_geometry(BASE_MODEL), rope_theta=5e5, dtype="float32") == read_geometry(
        older
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model_type", "deepseek_v3"),
        ("hidden_act", "gelu"),
        ("attention_bias", True),
        ("use_sliding_window", True),
        ("num_experts_per_tok", 1),
        ("rope_parameters", {"rope_type": "yarn", "factor": 4.0}),
    ],
)
def test_what_is_not_built_is_refused_by_name(tmp_path, setting, value):
    name = {
        "model_type": "latent attention",
        "attention_bias": "biases beside",
        "use_sliding_window": "sliding window",
        "num_experts_per_tok": "one expert per token",
        "rope_parameters": "rope_type",
    }.get(setting, setting)

    with pytest.raises(SettingsError, match=name):
        read_geometry(edited(tmp_path, **{setting: value}))


def test_a_folder_without_a_config_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"config\.json is missing"):
        read_geometry(tmp_path)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (LayoutSettings(tensor=4), "layout.tensor is 4.*2 key-value heads"),
        (LayoutSettings(pipeline=2), "layout.pipeline is 2.*3 layers"),
        (LayoutSettings(expert=3), "layout.expert is 3.*8 experts"),
    ],
)
def test_layouts_that_do_not_divide_the_model_are_refused(layout, message):
    with pytest.raises(SettingsError, match=message):
        read_geometry(BASE_MODEL).check(layout)


def test_a_dense_model_has_no_experts_to_spread():
    dense = replace(read_geometry(BASE_MODEL), family="qwen3", experts=0, dense_size=250)

    with pytest.raises(SettingsError, match="qwen3 has no experts"):
        dense.check(LayoutSettings(expert=2))
    with pytest.raises(SettingsError, match="250 feed-forward units"):
        replace(dense, heads=16, groups=4).check(LayoutSettings(tensor=4))


def test_the_vocabulary_is_padded_to_a_multiple_of_the_ranks():
    geometry = replace(read_geometry(BASE_MODEL), vocab=301)

    assert [301, 302, 304] == [geometry.padded_vocab(tensor) for tensor in (1, 2, 4)]
