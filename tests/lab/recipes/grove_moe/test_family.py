"""Grove MoE as an architecture of one's own: counted, refused by name, opened by its pin."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from data_schemas.machine_settings import LayoutSettings, MachineSettings
from data_schemas.settings import PipelineSettings
from tasks.capacity import memory
from tasks.capacity.model_shape import QWEN3_15B_A2B, rank_tensors, shape_of
from tasks.engines import select
from tasks.engines.embedded.hf_model import load_model
from tasks.errors import SettingsError
from tasks.lab.recipes.grove_moe.family import adjugates_per_token
from tasks.lab.recipes.grove_moe.model import GroveMoeConfig, GroveMoeForCausalLM
from tasks.models.architectures import CODE, read_architecture
from tasks.models.model_folder import check_model_folder
from tasks.settings import fit
from tests.capacity.test_memory import TINY, kept_by_embedded_layers

SIZES = json.loads((Path(__file__).parent / "vectors.json").read_text())["sizes"]


def test_the_folder_names_the_code_of_the_recipe_with_its_digest(tiny_grove):
    config = json.loads((tiny_grove / "config.json").read_text())

    assert config[CODE].startswith("tasks.lab.recipes.grove_moe.family:GroveMoe@")
    check_model_folder(tiny_grove)
    assert "grove_moe" == read_architecture(tiny_grove).family


def test_a_folder_of_an_older_state_of_the_recipe_is_opened(tiny_grove, tmp_path):
    config = json.loads((tiny_grove / "config.json").read_text())
    config[CODE] = config[CODE].partition("@")[0] + "@" + "0" * 64
    (tmp_path / "config.json").write_text(json.dumps(config))

    assert 4 == read_architecture(tmp_path).extra_experts


def test_adjugates_are_counted(tiny_grove):
    built = load_model(tiny_grove)
    shape = shape_of(json.loads((tiny_grove / "config.json").read_text()))

    assert sum(p.numel() for p in built.parameters()) == shape.parameters
    assert (4, 8) == (shape.extra_experts, shape.extra_width)
    assert shape.parameters == rank_tensors(shape, LayoutSettings(), 0).total


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size["name"])
def test_published_counts_of_adjugates_come_out(size):
    plain = replace(
        QWEN3_15B_A2B,
        layers=size["layers"],
        hidden=size["hidden"],
        experts=size["experts"],
        experts_per_token=size["top_k"],
    )
    used = adjugates_per_token(size["experts"], size["groups"], size["top_k"])
    grown = replace(
        plain, extra_experts=size["groups"], extra_width=size["width"], extra_active=used
    )

    assert size["added"] == grown.parameters - plain.parameters
    active = grown.active_parameters - plain.active_parameters
    assert size["added_active_uniform"] == pytest.approx(active, abs=1.0)


def test_activations_are_what_autograd_saves():
    sizes = {"num_chunk_experts": 4, "chunk_expert_intermediate_size": 32}
    geometry = replace(
        TINY, extra_experts=4, extra_width=32, extra_active=adjugates_per_token(8, 4, 2)
    )
    measured, tokens = kept_by_embedded_layers(GroveMoeConfig, GroveMoeForCausalLM, **sizes)
    computed = memory.layer_bytes(geometry, LayoutSettings(), tokens, memory.EMBEDDED)

    assert measured == pytest.approx(computed, rel=0.05)


@pytest.mark.parametrize(
    ("part", "kind", "instead"), [("rollout", "vllm", "hf"), ("trainer", "megatron", "torch")]
)
def test_engines_without_adjugate_experts_refuse_the_model_by_name(tiny_grove, part, kind, instead):
    openers = {"rollout": select.open_rollout, "trainer": select.open_trainer}

    with pytest.raises(
        SettingsError,
        match=f"engines.{part} '{kind}' does not have adjugate experts of this grove_moe model; "
        f"use '{instead}'",
    ):
        openers[part](MachineSettings.model_validate({part: kind}), tiny_grove)


def test_engines_without_a_layer_of_the_base_are_refused_before_any_stage(tiny_grove):
    settings = PipelineSettings.model_validate(
        {"base_model": str(tiny_grove), "evaluation": {"engines": {"rollout": "vllm"}}}
    )

    with pytest.raises(SettingsError, match=r"evaluation: .* 'vllm' does not have adjugate"):
        fit.require_layers(settings)
    fit.require_layers(PipelineSettings(base_model=str(tiny_grove)))
