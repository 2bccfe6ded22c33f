"""Tensors under the names of Hugging Face files, where every expert has tensors of its own.

transformers holds the experts of a layer in memory as two tensors; files, and so weight syncs and
their digests, use one name per expert and matrix. A sync can then be cut between experts. Some
families have other names in files than in memory, or one tensor for query, key and value
(`Names`). A router's bias is a buffer, which is sent and written like any parameter.

Letters: E experts, F inner size of an expert, H hidden.
"""

from collections.abc import Iterable, Iterator

import torch

from tasks.models.architectures import Names, architecture_of

GATE_UP, DOWN = "experts.gate_up_proj", "experts.down_proj"
"""[E, 2F, H] and [E, H, F]; the names of other stacks of experts end so, too."""
FUSED, PARTS = ".self_attn.query_key_value.", tuple(f".self_attn.{one}_proj." for one in "qkv")
"""What is one tensor in files, before `Names` renames it, and its parts in memory."""


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


def names_of(model: torch.nn.Module) -> Names:
    """Return how the files of a transformers model name its tensors."""
    config = getattr(model, "config", None)
    return Names() if config is None else architecture_of(config.to_dict()).names


def held_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor of a transformers model as it is in memory, split by experts: views.

    Those are its parameters and the buffers that files hold; none of them has a gradient.
    """
    for name, parameter in model.named_parameters():
        yield from split_experts(name, parameter.detach())
    saved = model.state_dict().keys()
    for name, buffer in model.named_buffers():
        if name in saved:
            yield name, buffer


def named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor of a transformers model under the name of files, without gradients.

    Views, not copies, except where files hold several tensors as one.
    """
    names, waiting = names_of(model), dict[str, dict[str, torch.Tensor]]()
    for name, tensor in held_tensors(model):
        part = next((one for one in PARTS if one in name), None) if names.fused_qkv else None
        if part is None:
            yield names.in_file(name), tensor
            continue
        parts = waiting.setdefault(name.replace(part, FUSED), {})
        parts[part] = tensor
        if len(parts) == len(PARTS):
            fused = name.replace(part, FUSED)
            yield names.in_file(fused), torch.cat([parts[one] for one in PARTS])
            del waiting[fused]


def in_memory(
    model: torch.nn.Module, tensors: Iterable[tuple[str, torch.Tensor]]
) -> dict[str, torch.Tensor]:
    """Undo `named_tensors`: by the names that `held_tensors` yields."""
    names = names_of(model)
    experts: dict[str, torch.Tensor] = {}
    for name, tensor in tensors:
        own = names.in_memory(name)
        if not names.fused_qkv or FUSED not in own:
            experts[own] = tensor
            continue
        targets = [own.replace(FUSED, part) for part in PARTS]
        sizes = [len(model.get_parameter(target)) for target in targets]
        if sum(sizes) != len(tensor):
            sizes = [len(tensor), 0, 0]  # of another shape, which the caller sees and names
        experts |= dict(zip(targets, tensor.split(sizes), strict=True))
    return experts
