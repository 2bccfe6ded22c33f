"""Tensors under the names of Hugging Face files, where every expert has tensors of its own.

transformers holds the experts of a layer in memory as two tensors; files, and so weight syncs and
their digests, use one name per expert and matrix. A sync can then be cut between experts.

Letters: E experts, F inner size of an expert, H hidden.
"""

from collections.abc import Iterator

import torch

GATE_UP, DOWN = "experts.gate_up_proj", "experts.down_proj"
"""[E, 2F, H] and [E, H, F]; adjugates of Grove MoE are in `chunk_experts`."""


def split_experts(name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield views of the experts of a tensor that holds all of a layer; any other as it is."""
    if tensor.ndim != 3 or not name.endswith((GATE_UP, DOWN)):
        yield name, tensor
        return
    stem, _, fused = name.rpartition(".")
    parts = ("gate_proj", "up_proj") if fused == "gate_up_proj" else ("down_proj",)
    for expert, both in enumerate(tensor):
        for part, one in zip(parts, both.chunk(len(parts)), strict=True):
            yield f"{stem}.{expert}.{part}.weight", one


def named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every parameter of a transformers model, without gradients: views, not copies."""
    for name, parameter in model.named_parameters():
        yield from split_experts(name, parameter.detach())
