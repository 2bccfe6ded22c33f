"""A profile finds a planted Super Expert, and none where there is none."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.machine_settings import Precision
from data_schemas.presets import CPU_SMOKE, FULL_SCALE
from data_schemas.rows import Parent
from data_schemas.settings import MergeSettings
from tasks.engines.chat import load_tokenizer
from tasks.errors import DataError, SettingsError
from tasks.lab.recipes.super_experts.expert_profile import (
    calibration,
    facts,
    profile,
    protect,
    texts,
)
from tasks.training.foundation.base import shipped_base
from tasks.training.merge.checkpoint import merge as merge_checkpoints
from workflows.lab.recipes.super_experts import super_experts

LAYER, EXPERT = 0, 5
DOWN = f"model.layers.{LAYER}.mlp.experts.{EXPERT}.down_proj.weight"
ROUTER = f"model.layers.{LAYER}.mlp.gate.weight"


def changed_copy(source, folder, change):
    """A copy of a model whose tensors `change` has edited."""
    shutil.copytree(source, folder)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def plant(tensors):
    """Scale one row of the expert's down projection until its peak is about 5,000."""
    tensors[DOWN][7] *= 5000.0 / 2.0


@pytest.fixture(scope="module")
def unplanted():
    return profile(shipped_base(), texts(""))


@pytest.fixture(scope="module")
def planted_model(tmp_path_factory):
    return changed_copy(shipped_base(), tmp_path_factory.mktemp("planted") / "model", plant)


@pytest.fixture(scope="module")
def planted(planted_model):
    return profile(planted_model, texts(""))


def test_the_shipped_base_has_none_and_the_profile_says_why(unplanted):
    assert () == unplanted.named
    assert () == unplanted.massive_layers
    assert {"eq_6": (), "algorithm": (), "code": ((1, 6),)} == {
        one.reading: one.named for one in unplanted.readings
    }
    assert "none" == facts(unplanted)["super_experts"]
    assert "after 0 of 3 layers" in unplanted.reason


def test_every_token_is_counted_once_per_expert_that_it_chose(unplanted):
    assert [2 * unplanted.calibration_tokens] * 3 == [sum(layer) for layer in unplanted.tokens]


def test_a_planted_expert_is_found_by_all_three_readings(planted):
    assert [((LAYER, EXPERT),)] * 3 == [one.named for one in planted.readings]
    assert ((LAYER, EXPERT),) == planted.named
    assert LAYER in planted.massive_layers
    assert 1000.0 < planted.peaks[LAYER][EXPERT] < 50_000.0
    assert f"L{LAYER}E{EXPERT}" == facts(planted)["super_experts"]


@pytest.mark.parametrize("method", ["ties", "linear"])
def test_the_merge_keeps_a_planted_expert_bit_for_bit(planted, planted_model, tmp_path, method):
    def noise(tensors):
        generator = torch.Generator().manual_seed(1)
        for tensor in tensors.values():
            tensor += (0.01 * torch.randn(tensor.shape, generator=generator)).to(tensor.dtype)

    def other_noise(tensors):
        noise(tensors)
        for tensor in tensors.values():
            tensor *= 1.01

    reasoning = changed_copy(planted_model, tmp_path / "reasoning", noise)
    commerce = changed_copy(planted_model, tmp_path / "commerce", other_noise)
    settings = CPU_SMOKE.model_copy(update={"merge": MergeSettings(method=method)})
    merged = {}
    for name, merge in (("spared", protect(settings, planted).merge), ("plain", settings.merge)):
        (tmp_path / name).mkdir()
        merge_checkpoints(merge, planted_model, (reasoning, commerce), tmp_path / name)
        merged[name] = load_file(tmp_path / name / "model.safetensors")
    parent = load_file(reasoning / "model.safetensors")

    for part in ("gate_proj", "up_proj", "down_proj"):
        name = DOWN.replace("down_proj", part)
        assert torch.equal(parent[name], merged["spared"][name])
        assert not torch.equal(parent[name], merged["plain"][name])
    assert torch.equal(parent[ROUTER][EXPERT], merged["spared"][ROUTER][EXPERT])
    others = [row for row in range(8) if row != EXPERT]
    assert torch.equal(merged["plain"][ROUTER][others], merged["spared"][ROUTER][others])


def test_engines_in_fp8_spare_the_layer_and_others_are_left_alone(planted, unplanted):
    found = protect(FULL_SCALE, planted)
    layer = f"model.layers.{LAYER}.mlp.experts"

    assert (layer,) == found.rl_one.engines.fp8_ignored_layers
    assert Precision.BF16 is found.grading.engines.precision
    assert () == found.grading.engines.fp8_ignored_layers
    assert () == protect(CPU_SMOKE, planted).rl_one.engines.fp8_ignored_layers
    assert FULL_SCALE == protect(FULL_SCALE, unplanted)
    assert found == type(found).model_validate(found.model_dump(mode="json"))


def test_what_the_settings_already_copy_is_kept(planted):
    pattern = f"model.layers.{LAYER}.mlp.experts.{EXPERT}.*"
    merge = MergeSettings(copied={pattern: Parent.COMMERCE, "*.gate.*": Parent.REASONING})
    found = protect(CPU_SMOKE.model_copy(update={"merge": merge}), planted).merge.copied

    assert Parent.COMMERCE == found[pattern]
    assert {*merge.copied, f"{ROUTER}[{EXPERT}]"} == set(found)


def test_calibration_text_is_cut_into_rows(tmp_path):
    tokenizer, path = load_tokenizer(shipped_base()), tmp_path / "text.txt"
    path.write_text("A bag costs 12.\n" * 4000)
    rows_NT = calibration(tokenizer, texts(str(path)))

    assert ((32, 256), np.int32) == (rows_NT.shape, rows_NT.dtype)
    with pytest.raises(DataError, match="has 0 tokens; 8192 are needed"):
        calibration(tokenizer, [])
    with pytest.raises(SettingsError, match="cannot be read as UTF-8 text"):
        list(texts(str(tmp_path / "absent")))


def test_a_model_without_experts_is_refused_by_name(tiny_dense):
    with pytest.raises(SettingsError, match="model without experts, which"):
        profile(tiny_dense, ["a"] * 10_000)


def test_a_text_that_is_not_there_is_refused_before_the_model_is_copied(tmp_path):
    with pytest.raises(SettingsError, match="text: /nowhere cannot be read"):
        super_experts(text="/nowhere", store=str(tmp_path / "runs"))
    assert [] == [*(tmp_path / "runs").glob("objects/*")]
