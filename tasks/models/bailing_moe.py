"""Ling and Ring (model type `bailing_moe`) as a transformers model: GLM-4.5 with other names.

Source: inclusionAI's modelling code of Ling-lite-1.5 and Ling-mini-2.0, which current versions of
transformers cannot import. Both generations are layers of GLM-4.5 (attention with optional norms
and partial rotation, shared experts beside the routed ones, dense first layers); the first one's
router is a softmax, which is Qwen3-MoE's. config.json has inclusionAI's names, and so do files,
where query, key and value are one tensor.
"""

from typing import Any, cast

from huggingface_hub.dataclasses import strict
from transformers import Glm4MoeConfig, Glm4MoeForCausalLM
from transformers.core_model_loading import Split, WeightConverter, WeightRenaming
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

from tasks.models.architectures import BAILING_MOE, architecture_of
from tasks.models.registration import register_classes


@strict
class BailingMoeConfig(Glm4MoeConfig):
    """inclusionAI's keys for the config of GLM-4.5."""

    model_type = BAILING_MOE
    attribute_map = Glm4MoeConfig.attribute_map | {
        "num_experts": "n_routed_experts",
        "num_shared_experts": "n_shared_experts",
        "use_qkv_bias": "attention_bias",
    }
    score_function: str | None = None
    moe_router_enable_expert_bias: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        """Give what config.json leaves out the values of its generation."""
        kwargs.setdefault("partial_rotary_factor", 1.0)
        self.n_group = self.n_group or 1
        self.topk_group = self.topk_group or 1
        super().__post_init__(**kwargs)
        # vLLM reads it here, and rotates whole heads where it is not: transformers has moved it.
        self.partial_rotary_factor = (self.rope_parameters or {}).get("partial_rotary_factor", 1.0)


class BailingMoeForCausalLM(Glm4MoeForCausalLM):
    """GLM-4.5 with the router of either generation."""

    config_class = BailingMoeConfig

    def __init__(self, config: BailingMoeConfig) -> None:
        super().__init__(config)
        architecture = architecture_of(config.to_dict())
        assert architecture.routing is not None
        if architecture.routing.score == "softmax":
            for layer in architecture.moe_layers:
                block = self.model.get_submodule(f"layers.{layer}.mlp")
                block.gate = Qwen3MoeTopKRouter(config)
        # Without a type: a checker that follows its body reads every model of transformers.
        cast("Any", self).post_init()


def register() -> None:
    """Let the Auto classes of transformers open it; once is enough, twice does no harm."""
    conversions = [
        WeightRenaming("model.word_embeddings.", "model.embed_tokens."),
        WeightConverter(
            source_patterns="attention.query_key_value.weight",
            target_patterns=[f"self_attn.{part}_proj.weight" for part in ("q", "k", "v")],
            operations=[Split(dim=0)],
        ),
        WeightRenaming(".attention.dense.", ".self_attn.o_proj."),
        WeightRenaming(".attention.query_layernorm.", ".self_attn.q_norm."),
        WeightRenaming(".attention.key_layernorm.", ".self_attn.k_norm."),
        WeightRenaming(".mlp.gate.expert_bias", ".mlp.gate.e_score_correction_bias"),
    ]
    register_classes(BailingMoeConfig, BailingMoeForCausalLM, conversions)
