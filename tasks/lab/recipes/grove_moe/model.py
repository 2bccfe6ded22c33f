"""Grove MoE as a transformers model: Qwen3-MoE with adjugate experts (arXiv 2508.07785).

Tensors have the names of inclusionAI's checkpoints: those of Qwen3-MoE, and `mlp.chunk_experts.G`
for the adjugate of group G. Their modelling code has its sizes as constants (groups of two, as wide
as an attention head, scale 0.05); here they are in config.json. The formula is in
formulas.py.

Everything else is Qwen3-MoE: the classes derive from its own, so that whatever runs on its routers
and experts (router replay, adapters, profiles) runs on these.
"""

from typing import Any, cast

import torch
from huggingface_hub.dataclasses import strict
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
from transformers.core_model_loading import (
    Concatenate,
    ConversionOps,
    MergeModulelist,
    WeightConverter,
)
from transformers.models.qwen3_moe.modeling_qwen3_moe import (
    Qwen3MoeExperts,
    Qwen3MoeSparseMoeBlock,
)

from tasks.algorithms.expert_products import grouped, through_experts
from tasks.lab.recipes.grove_moe.family import GROVE_MOE
from tasks.lab.recipes.grove_moe.formulas import summed_by_group
from tasks.models.registration import register_classes


@strict
class GroveMoeConfig(Qwen3MoeConfig):
    """The config of Qwen3-MoE and the sizes of the adjugate experts."""

    model_type = GROVE_MOE

    num_chunk_experts: int = 64
    """Groups of a layer, and so its adjugates."""
    chunk_expert_intermediate_size: int = 128
    chunk_expert_scale: float = 0.05

    def __post_init__(self, **kwargs: object) -> None:
        """Refuse groups of different sizes, and a dense layer."""
        super().__post_init__(**kwargs)
        if self.num_chunk_experts < 1 or self.num_experts % self.num_chunk_experts:
            raise ValueError(
                f"num_chunk_experts {self.num_chunk_experts} does not divide the "
                f"{self.num_experts} experts"
            )
        if self.mlp_only_layers or self.decoder_sparse_step != 1:
            raise ValueError("every layer of Grove MoE is a mixture of experts")


class GroveMoeChunkExperts(Qwen3MoeExperts):
    """The adjugates of a layer, stacked as its experts are."""

    def __init__(self, config: GroveMoeConfig) -> None:
        super().__init__(
            Qwen3MoeConfig(
                hidden_size=config.hidden_size,
                hidden_act=config.hidden_act,
                num_experts=config.num_chunk_experts,
                moe_intermediate_size=config.chunk_expert_intermediate_size,
            )
        )
        self.num_groups = config.num_chunk_experts
        self.skips = True
        """A group that is listed before is not computed again (`use_projections`)."""

    def forward(
        self, hidden_MH: torch.Tensor, groups_MK: torch.Tensor, weights_MK: torch.Tensor
    ) -> torch.Tensor:
        """Sum the adjugates of every token; a group listed before is skipped."""
        return through_experts(
            hidden_MH,
            weights_MK,
            groups_MK,
            self.num_groups,
            gate_up=lambda rows, ends: grouped(rows, self.get_parameter("gate_up_proj"), ends),
            down=lambda rows, ends: grouped(rows, self.get_parameter("down_proj"), ends),
            skips=True,
        )


class GroveMoeSparseMoeBlock(Qwen3MoeSparseMoeBlock):
    """Experts, their router and their adjugates."""

    def __init__(self, config: GroveMoeConfig) -> None:
        super().__init__(config)
        self.chunk_experts = GroveMoeChunkExperts(config)
        self._size = config.num_experts // config.num_chunk_experts
        self._scale = config.chunk_expert_scale

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Route the tokens; experts and adjugates follow the same choice."""
        hidden_MH = hidden_states.flatten(0, -2)
        _, gates_MK, experts_MK = self.gate(hidden_MH)
        routed_MH = self.experts(hidden_MH, experts_MK, gates_MK)
        adjugates_MH = self.beside_experts(hidden_MH, gates_MK, experts_MK)
        return (routed_MH + adjugates_MH).view_as(hidden_states)

    def beside_experts(
        self, hidden_MH: torch.Tensor, gates_MK: torch.Tensor, experts_MK: torch.Tensor
    ) -> torch.Tensor:
        """Return what the adjugates of the chosen experts add."""
        number = self.chunk_experts.num_groups
        groups_MK, weights_MK = summed_by_group(
            experts_MK, gates_MK, size=self._size, num_groups=number
        )
        return self._scale * self.chunk_experts(hidden_MH, groups_MK, weights_MK)


class GroveMoeForCausalLM(Qwen3MoeForCausalLM):
    """Qwen3-MoE whose layers have adjugate experts."""

    config_class = GroveMoeConfig

    def __init__(self, config: GroveMoeConfig) -> None:
        super().__init__(config)
        for layer in self.model.layers:
            layer.mlp = GroveMoeSparseMoeBlock(config)
        # Without a type: a checker that follows its body reads every model of transformers.
        cast("Any", self).post_init()


def register() -> None:
    """Let the Auto classes of transformers open Grove MoE; once is enough, twice does no harm."""
    fused = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
    conversions: list[WeightConverter] = []
    for target, sources in fused.items():
        stacked: list[ConversionOps] = [MergeModulelist(dim=0)]
        conversions.append(
            WeightConverter(
                source_patterns=[f"mlp.chunk_experts.*.{source}.weight" for source in sources],
                target_patterns=f"mlp.chunk_experts.{target}",
                operations=[*stacked, Concatenate(dim=1)] if len(sources) > 1 else stacked,
            )
        )
    register_classes(GroveMoeConfig, GroveMoeForCausalLM, conversions)
