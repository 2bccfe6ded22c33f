"""A small Grove MoE."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.lab.recipes.grove_moe.upcycling import upcycle


@pytest.fixture(scope="session")
def tiny_grove(tiny_moe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny_moe` with adjugate experts that say something. Read only."""
    folder = tmp_path_factory.mktemp("tiny_grove")
    upcycle(UpcyclingSettings(width=8, scale=0.5), tiny_moe, folder)
    generator = torch.Generator().manual_seed(0)
    for file in folder.glob("model-chunk-experts-*.safetensors"):
        drawn = {
            name: torch.randn(tensor.shape, generator=generator) * 0.5
            for name, tensor in load_file(file).items()
        }
        save_file(drawn, file, metadata={"format": "pt"})
    return folder
