"""What the tests of engines share: a model that every one of them can open."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM


def build_served_moe(tiny_moe: Path, folder: Path, **changes: object) -> Path:
    """Write a random model like `tiny_moe`, with heads as wide as vLLM's CPU kernel needs."""
    shutil.copytree(tiny_moe, folder, dirs_exist_ok=True)
    config = Qwen3MoeConfig.from_pretrained(tiny_moe, head_dim=32, **changes)
    torch.manual_seed(0)
    model = Qwen3MoeForCausalLM(config)
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            torch.nn.init.normal_(parameter, std=0.5 if name.endswith("gate.weight") else 0.1)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def served_moe(tiny_moe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory that vLLM can open, too. Read only."""
    return build_served_moe(tiny_moe, tmp_path_factory.mktemp("served_moe"))
