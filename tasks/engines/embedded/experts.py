"""Other projections for the experts of a transformers model than its own."""

import torch
from torch import nn

from tasks.algorithms.experts.products import Projection, through_experts


def are_experts(module: nn.Module) -> bool:
    """Return whether a module is all experts of a layer: two stacked tensors, in every family."""
    held = dict(module.named_parameters(recurse=False))
    return {"gate_up_proj", "down_proj"} <= held.keys() and held["down_proj"].ndim == 3


def use_projections(experts: nn.Module, gate_up: Projection, down: Projection) -> None:
    """Compute a layer's experts with other projections than its own from now on."""
    num_experts = len(experts.get_parameter("down_proj"))

    def forward(
        hidden_MH: torch.Tensor, experts_MK: torch.Tensor, gates_MK: torch.Tensor
    ) -> torch.Tensor:
        return through_experts(
            hidden_MH,
            gates_MK,
            experts_MK,
            num_experts,
            gate_up=gate_up,
            down=down,
            skips=bool(getattr(experts, "skips", False)),
        )

    experts.forward = forward
