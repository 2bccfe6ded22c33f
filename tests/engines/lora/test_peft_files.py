"""Adapters as files of PEFT."""

import json

import torch
from safetensors.torch import load_file

from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora.files import write_adapter


def test_every_factor_is_written_under_the_name_that_peft_reads(tiny_moe, tmp_path):
    factors = dict(TorchTrainer(tiny_moe, lora_rank=8).weights())

    write_adapter(tmp_path / "adapter", factors.items(), rank=8)
    found = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())

    assert {f"base_model.model.{name}" for name in factors} == found.keys()
    assert all(torch.equal(factors[name], found[f"base_model.model.{name}"]) for name in factors)
    assert "base_model.model.model.layers.1.mlp.experts.7.down_proj.lora_B.weight" in found
    assert ("LORA", 8, 32) == (config["peft_type"], config["r"], config["lora_alpha"])
    projections = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert projections == set(config["target_modules"])
