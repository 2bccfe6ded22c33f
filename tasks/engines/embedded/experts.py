"""Other projections for the experts of a transformers model than its own."""

import torch
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts

from tasks.algorithms.experts.products import Projection, through_experts
from tasks.models.grove_moe import GroveMoeChunkExperts


def use_projections(experts: Qwen3MoeExperts, gate_up: Projection, down: Projection) -> None:
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
            skips=isinstance(experts, GroveMoeChunkExperts),
        )

    experts.forward = forward
