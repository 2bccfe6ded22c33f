"""An adapter as files of PEFT, which transformers, vLLM and others read beside the base model."""

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file

from tasks.engines.lora.factors import ALPHA, PROJECTIONS

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."


def write_adapter(folder: Path, factors: Iterable[tuple[str, torch.Tensor]], rank: int) -> None:
    """Write the factors of every matrix; an expert's are under the expert's own name.

    Args:
        folder: made if it does not exist.
        factors: as a trainer's weight sync sends them.
        rank: of the factors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {PREFIX + name: factor.cpu().contiguous() for name, factor in factors}
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    used = {name.split(".")[-3] for name in tensors}
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,  # the statement of the stage names it by digest
        "r": rank,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": [name for name in PROJECTIONS if name in used],
        "inference_mode": True,
    }
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")
