"""A model for prompts that show the memory."""

import json
import shutil

import pytest


@pytest.fixture
def roomy(tiny_moe, tmp_path):
    """The tiny model with more positions."""
    folder = shutil.copytree(tiny_moe, tmp_path / "roomy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 512}))
    return folder
