"""Factors of LoRA under the names of Hugging Face files, and their merge into the weights.

Source: LoRA (arXiv 2106.09685): W' = W + (alpha / r) B A with B = 0 at the start. Every
projection is adapted, those of each expert as well; routers, norms, embeddings and head are
frozen. The factors of `X.weight` [O, I] are `X.lora_A.weight` [r, I] and `X.lora_B.weight` [O,
r], as in PEFT.

Letters: O outputs, I inputs, r rank.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch

ALPHA = 32
"""With a constant alpha and a scale of alpha / r, the best learning rate hardly depends on the rank
(Schulman et al., LoRA Without Regret, 2025, whose alpha this is)."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Names of the adapted modules."""


def is_adapted(name: str) -> bool:
    """Return whether a tensor of a model has factors: 'model.layers.0.self_attn.q_proj.weight'."""
    module, _, last = name.rpartition(".")
    return last == "weight" and module.rpartition(".")[2] in PROJECTIONS


def describe(rank: int) -> dict[str, str]:
    """Say in a statement what was trained; nothing if all weights were."""
    if not rank:
        return {}
    return {"lora": f"rank {rank}, alpha {ALPHA}, of {', '.join(PROJECTIONS)} and every expert's"}


def factor_names(name: str) -> tuple[str, str]:
    """Name the factors A and B of an adapted tensor."""
    module = name.removesuffix(".weight")
    return f"{module}.lora_A.weight", f"{module}.lora_B.weight"


def merge(weight_OI: torch.Tensor, a_rI: torch.Tensor, b_Or: torch.Tensor) -> torch.Tensor:
    """Return W + (alpha / r) B A in float32. Both engines merge with it, so their bits agree."""
    scale = ALPHA / a_rI.shape[0]
    return weight_OI.to(a_rI).float() + scale * (b_Or.float() @ a_rI.float())


def merged(
    tensors: Iterable[tuple[str, torch.Tensor]], factors: Mapping[str, torch.Tensor]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a model, with the factors merged into those that have any."""
    for name, tensor in tensors:
        if is_adapted(name):
            a_name, b_name = factor_names(name)
            yield name, merge(tensor, factors[a_name], factors[b_name])
        else:
            yield name, tensor
