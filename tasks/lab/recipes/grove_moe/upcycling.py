"""Upcycle a Qwen3-MoE checkpoint to Grove MoE (arXiv 2508.07785).

Every tensor of the checkpoint is copied as it is. Adjugate experts are added in files of their own,
one for each layer: down projections are 0, so that the logits are those of the checkpoint, bit for
bit; gate and up projections are drawn.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tasks.errors import SettingsError
from tasks.lab.recipes.grove_moe.family import GROVE_MOE, GroveMoe, adjugates_per_token
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.models.architectures import CODE
from tasks.models.model_folder import read_config
from tasks.models.weights import INDEX_FILE, SINGLE_FILE, Weights
from tasks.plugins import pin, reference_to
from tasks.store.files import write_bytes
from tasks.store.manifest import MANIFEST

STANDARD_DEVIATION = 0.006
"""Deviation of gate and up projections (the paper's)."""
FIRST_FILE = "model-experts.safetensors"
"""What `model.safetensors` is called beside others: a reader would stop at its usual name."""


def upcycle(settings: UpcyclingSettings, folder: Path, out: Path) -> dict[str, float | int | str]:
    """Write the upcycled model into the empty folder `out`.

    Returns:
        Facts: adjugates of a layer, parameters added, and those of them that a token is expected to
        use if its experts were drawn uniformly.

    Raises:
        SettingsError: the model is not a Qwen3-MoE, or its experts do not fill the groups.
    """
    config = read_config(folder)
    experts, groups = _groups(settings, config, folder)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name not in (MANIFEST, SINGLE_FILE, INDEX_FILE):
            shutil.copyfile(path, out / path.name)
    with Weights(folder) as weights:
        file_of = {
            name: FIRST_FILE if file == SINGLE_FILE else file
            for name, file in weights.file_of.items()
        }
        dtype = weights.read("model.layers.0.mlp.gate.weight").dtype
    if (folder / SINGLE_FILE).exists():
        shutil.copyfile(folder / SINGLE_FILE, out / FIRST_FILE)
    generator = torch.Generator().manual_seed(settings.seed)
    added = 0
    for layer in range(config["num_hidden_layers"]):
        file = f"model-chunk-experts-{layer:05d}.safetensors"
        tensors = {
            f"model.layers.{layer}.mlp.chunk_experts.{name}": tensor.to(dtype)
            for name, tensor in _adjugates(settings, groups, config["hidden_size"], generator)
        }
        save_file(tensors, out / file, metadata={"format": "pt"})
        file_of |= dict.fromkeys(tensors, file)
        added += sum(tensor.numel() for tensor in tensors.values())
    index = {"metadata": {}, "weight_map": dict(sorted(file_of.items()))}
    write_bytes(out / INDEX_FILE, json.dumps(index, indent=2).encode() + b"\n")
    upcycled = config | {
        "model_type": GROVE_MOE,
        "architectures": ["GroveMoeForCausalLM"],
        CODE: pin(reference_to(GroveMoe)),
        "num_chunk_experts": groups,
        "chunk_expert_intermediate_size": settings.width,
        "chunk_expert_scale": settings.scale,
    }
    write_bytes(out / "config.json", json.dumps(upcycled, indent=2).encode() + b"\n")
    used = adjugates_per_token(experts, groups, config["num_experts_per_tok"])
    return {
        "adjugates": groups,
        "parameters_added": added,
        "active_parameters_added": added * used / groups,
        "adjugates_per_token": used,
    }


def _groups(settings: UpcyclingSettings, config: dict[str, Any], folder: Path) -> tuple[int, int]:
    """Return experts and groups of a layer."""
    if config.get("model_type") != "qwen3_moe" or config.get("mlp_only_layers"):
        raise SettingsError(
            f"{folder} is a {config.get('model_type')} model; adjugate experts are added to a "
            "qwen3_moe model whose every layer has experts"
        )
    experts = config.get("num_experts", config.get("num_local_experts"))
    assert isinstance(experts, int)
    if experts % settings.experts_per_group:
        raise SettingsError(
            f"experts_per_group {settings.experts_per_group} does not divide the {experts} experts "
            f"of {folder}"
        )
    return experts, experts // settings.experts_per_group


def _adjugates(
    settings: UpcyclingSettings, groups: int, hidden: int, generator: torch.Generator
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a layer's adjugates."""
    for group in range(groups):
        for part in ("gate_proj", "up_proj"):
            noise = torch.randn((settings.width, hidden), generator=generator)
            yield f"{group}.{part}.weight", noise * STANDARD_DEVIATION
        yield f"{group}.down_proj.weight", torch.zeros(hidden, settings.width)
