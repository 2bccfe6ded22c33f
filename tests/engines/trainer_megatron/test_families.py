"""Every family in Megatron: logits, gradients' names and files are those of transformers."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.support import refuse_megatron
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.errors import SettingsError
from tasks.models.architectures import architecture_of, read_architecture
from tests.engines.families import COMMON, CONFIGS, write_family
from tests.engines.trainer_megatron.small_models import LENGTHS, packed_tokens

BUILT = tuple(name for name in CONFIGS if name != "deepseek_v3")


@pytest.fixture(scope="module")
def families(tiny_moe, tmp_path_factory):
    root = tmp_path_factory.mktemp("families")
    return {name: write_family(name, tiny_moe, root / name.replace(" ", "_")) for name in BUILT}


@pytest.mark.engines
@pytest.mark.parametrize(
    "layout",
    [LayoutSettings(), LayoutSettings(tensor=2, expert=2)],
    ids=["one rank", "two ranks"],
)
def test_logits_and_files_of_every_family_are_those_of_transformers(families, layout, tmp_path):
    pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
    from tests.engines.trainer_megatron.gloo_world import run_world
    from tests.engines.trainer_megatron.layouts import processes
    from tests.engines.trainer_megatron.model_ranks import find

    ranks = families if layout.expert == 1 else routed(families)
    found = run_world(find, processes(layout), ranks, layout, tmp_path)

    for name, folder in ranks.items():
        model = load_model(folder)
        with torch.no_grad():
            parts = packed_tokens(model.config.vocab_size).split(LENGTHS, dim=1)
            expected_MV = torch.cat([model(part).logits[0] for part in parts])
        for rank in found:
            assert (expected_MV - rank[name].logits_MV).abs().max() <= 2e-5, name
        before, after = (load_file(one / "model.safetensors") for one in (folder, tmp_path / name))
        before.pop("lm_head.weight", None) if model.config.tie_word_embeddings else None
        assert before.keys() == after.keys(), name
        assert all(torch.equal(before[tensor], after[tensor]) for tensor in before), name
        config, copied = (
            json.loads((one / "config.json").read_text()) for one in (folder, tmp_path / name)
        )
        config.pop("torch_dtype", None)
        assert config | {"dtype": "float32"} == copied


def routed(families):
    return {name: folder for name, folder in families.items() if "llama" not in name}


@pytest.mark.parametrize(
    ("name", "changes", "part"),
    [
        ("deepseek_v3", {}, "multi-head latent attention"),
        ("ling mini 2", {"num_experts_per_tok": 6}, "groups of experts with num_experts_per_tok"),
        ("glm4_moe", {"norm_topk_prob": False}, "sigmoid scores that are not renormalised"),
        ("ling lite", {"moe_router_enable_expert_bias": True}, "a bias of softmax scores"),
        ("ling lite", {"norm_head": True}, "norm_head"),
        ("mixtral", {"router_jitter_noise": 0.1}, "router_jitter_noise"),
        ("qwen2_moe", {"num_experts_per_tok": 1, "norm_topk_prob": True}, "one expert per token"),
        (
            "llama3",
            {"rope_scaling": {**CONFIGS["llama3"]["rope_scaling"], "low_freq_factor": 2.0}},
            "other bounds of llama3",
        ),
    ],
)
def test_what_megatron_cannot_express_is_refused_by_name(name, changes, part):
    known = architecture_of(COMMON | CONFIGS[name] | changes)

    with pytest.raises(SettingsError, match=rf"engines\.trainer 'megatron' does not have .*{part}"):
        refuse_megatron(known)


def test_a_stage_without_a_router_is_refused(families):
    known = read_architecture(families["ling mini 2"])
    assert (1, 2) == known.moe_layers
    geometry = replace(read_geometry(families["ling mini 2"]))

    with pytest.raises(SettingsError, match=r"layout\.pipeline is 3.* dense layers only"):
        geometry.check(LayoutSettings(pipeline=3))
