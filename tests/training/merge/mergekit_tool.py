"""Runs in mergekit's own environment: its merges of three model folders, written beside ours.

    python mergekit_tool.py plan.json

The plan has the folders and, for every merge, mergekit's configuration and an output folder. Of
mergekit, two things are replaced: tensors are taken as they lie in the files (it would fuse the
experts of a layer), and DARE's random masks are ours, found by the digest of the task vector.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
from mergekit import architecture, sparsify
from mergekit.architecture import auto
from mergekit.config import MergeConfiguration
from mergekit.merge import run_merge
from mergekit.options import MergeOptions
from safetensors.torch import load_file

from tasks.algorithms.merging.drops import kept_entries, stream_key


def load(folder: str) -> dict[str, torch.Tensor]:
    parts = [load_file(file) for file in sorted(Path(folder).glob("*.safetensors"))]
    return {name: tensor.float() for part in parts for name, tensor in part.items()}


def digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


def our_keys(base: str, parents: list[str], seed: int) -> dict[str, int]:
    """Keys of our random numbers by the digest of the task vector."""
    origin = load(base)
    return {
        digest(tensor - origin[name]): stream_key(seed, place, name)
        for place, parent in enumerate(parents)
        for name, tensor in load(parent).items()
    }


def main(path: str) -> None:
    plan = json.loads(Path(path).read_text())
    keys = our_keys(plan["base"], plan["parents"], plan["seed"])

    def with_our_mask(tensor, density, rescale_norm=None):
        key = keys[digest(tensor)]
        kept = kept_entries(key, density, 0, tensor.numel()).view_as(tensor)
        return sparsify.rescaled_masked_tensor(tensor, kept.float(), rescale_norm)

    architecture.arch_info_for_config = lambda _: None
    auto.get_transformers_info = lambda *_: (None, None, None, None)
    sparsify.bernoulli = with_our_mask
    for merge in plan["merges"]:
        run_merge(
            MergeConfiguration.model_validate(merge["config"]),
            merge["out"],
            MergeOptions(copy_tokenizer=False, write_model_card=False, quiet=True),
        )


if __name__ == "__main__":
    main(sys.argv[1])
