"""Upcycle a dense model to a mixture of experts that computes the same (arXiv 2212.05055).

    python -m tasks.training.foundation.copied_experts MODEL OUT --experts 4

Every expert of a layer is a copy of its MLP, and the gates of a token's two experts sum to 1, so
that whatever the router chooses, the logits are those of the dense model up to the rounding of the
gates. The router is drawn: zeros would tie, and every token would have the same two experts.
Training makes the copies differ, because other tokens pass through each. Llama becomes Mixtral,
which has its attention.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tasks.errors import SettingsError
from tasks.models.model_folder import check_model_folder, read_config
from tasks.models.weights import INDEX_FILE, Weights
from tasks.platform.command_line import command_parser, positive, run
from tasks.store.files import write_bytes
from tasks.store.manifest import MANIFEST

STANDARD_DEVIATION = 0.02
"""Deviation of the routers, as transformers draws them."""
PER_TOKEN = 2
"""Experts of a token, as in Mixtral."""
_OF_EXPERT = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}


def copy_experts(folder: Path, out: Path, experts: int) -> None:
    """Write the mixture into the empty folder `out`.

    Args:
        folder: dense model.
        out: receives a file of weights per layer, and one of all others.
        experts: of a layer.

    Raises:
        SettingsError: the model is no Llama without biases, or there are fewer than two experts.
    """
    config = read_config(folder)
    _check(folder, config, experts)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != MANIFEST and ".safetensors" not in path.name:
            shutil.copyfile(path, out / path.name)
    generator = torch.Generator().manual_seed(0)
    file_of: dict[str, str] = {}
    with Weights(folder) as weights:
        for file, names in sorted(_files(weights).items()):
            tensors: dict[str, torch.Tensor] = {}
            for name in names:
                place, is_mlp, rest = name.partition(".mlp.")
                tensor = weights.read(name)
                if not is_mlp:
                    tensors[name] = tensor
                    continue
                moe, kind = f"{place}.block_sparse_moe", _OF_EXPERT[rest.partition(".")[0]]
                if f"{moe}.gate.weight" not in tensors:
                    router = torch.randn(experts, config["hidden_size"], generator=generator)
                    tensors[f"{moe}.gate.weight"] = (router * STANDARD_DEVIATION).to(tensor.dtype)
                for number in range(experts):
                    tensors[f"{moe}.experts.{number}.{kind}.weight"] = tensor.clone()
            save_file(tensors, out / file, metadata={"format": "pt"})
            file_of |= dict.fromkeys(tensors, file)
    index = {"metadata": {}, "weight_map": dict(sorted(file_of.items()))}
    write_bytes(out / INDEX_FILE, json.dumps(index, indent=2).encode() + b"\n")
    mixture = {name: value for name, value in config.items() if not name.endswith("_bias")} | {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": experts,
        "num_experts_per_tok": PER_TOKEN,
        "sliding_window": None,
    }
    write_bytes(out / "config.json", json.dumps(mixture, indent=2).encode() + b"\n")
    check_model_folder(out)


def _check(folder: Path, config: dict[str, Any], experts: int) -> None:
    """Refuse what has no mixture of copied experts.

    Raises:
        SettingsError: as `copy_experts`.
    """
    biased = config.get("attention_bias") or config.get("mlp_bias")
    if config.get("model_type") != "llama" or biased:
        kind = f"{config.get('model_type')!r}{' with biases' if biased else ''}"
        raise SettingsError(f"{folder} is of type {kind}; experts are copied of 'llama' without")
    if experts < PER_TOKEN:
        raise SettingsError(f"--experts is {experts}; a token has {PER_TOKEN}, give that or more")


def _files(weights: Weights) -> dict[str, list[str]]:
    """Name the tensors of each file to write: one for every MLP, one for all others."""
    parts: dict[str, list[str]] = defaultdict(list)
    for name in sorted(weights.file_of):
        place, is_mlp, _ = name.partition(".mlp.")
        layer = int(place.rpartition(".")[2]) if is_mlp else -1
        parts[f"model-{layer + 1:05d}.safetensors"].append(name)
    return parts


def main(arguments: Sequence[str]) -> None:
    """Upcycle one model; see --help."""
    parser = command_parser("python -m tasks.training.foundation.copied_experts", __doc__)
    parser.add_argument("model", type=Path, help="dense model directory")
    parser.add_argument("out", type=Path, help="model directory to write")
    parser.add_argument("--experts", type=positive, default=4, help="of a layer")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    copy_experts(args.model, args.out, args.experts)


if __name__ == "__main__":
    run(main)
