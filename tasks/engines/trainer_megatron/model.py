# pyright: reportMissingImports=false
"""Megatron's GPTModel for a geometry and a layout, and the inputs of packed rows.

Weights are left unset: convert.load fills all of them.
"""

import importlib.util
from collections.abc import Sequence
from itertools import accumulate
from typing import TypedDict

import torch
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_decoder_block_spec,
    get_gpt_layer_local_spec,
)
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
from megatron.core.transformer.transformer_config import TransformerConfig

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.trainer_megatron import wide_routers
from tasks.engines.trainer_megatron.geometry import Geometry
from tasks.engines.trainer_megatron.local_layers import PackedAttention, RMSNorm
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.engines.trainer_megatron.prefix_attention import PrefixAttention, SharedSeqParams
from tasks.engines.trainer_megatron.transfers import to_device
from tasks.errors import SettingsError

FAST_DEVICE = "cuda"
"""Type of device whose layers are Transformer Engine's."""
DTYPES = {
    Precision.FP32: torch.float32,
    Precision.BF16: torch.bfloat16,
    Precision.FP16: torch.float16,
}


class AttentionInputs(TypedDict):
    """Keyword arguments of GPTModel.forward beside the tokens."""

    position_ids: None
    attention_mask: None
    packed_seq_params: SharedSeqParams


def build(
    geometry: Geometry,
    layout: LayoutSettings,
    ranks: Ranks,
    *,
    trainable: bool = True,
    with_fp32_router: bool = False,
) -> list[GPTModel]:
    """Build this rank's part of the model: one chunk, its weights not set yet.

    Logits stay divided over the tensor ranks, columns beyond the vocabulary included.

    Args:
        trainable: False = evaluation mode without gradients, as for a reference.
        with_fp32_router: routers have weights in fp32, whatever the precision of the layout.

    Raises:
        SettingsError: the layout does not divide the model, the GPU kernels are missing, or a dense
            model is to have routers in fp32.
    """
    geometry.check(layout)
    refuse(layout, ranks.device)
    config = transformer_config(geometry, layout, ranks)
    model = assemble(geometry, config, _layers(config, ranks), ranks)
    if with_fp32_router:
        wide_routers.widen(model)
    model.requires_grad_(trainable)
    return [model.train(trainable)]


def refuse(layout: LayoutSettings, device: torch.device) -> None:
    """Refuse a precision that the device has no attention for.

    Raises:
        SettingsError: names the setting.
    """
    if device.type == "cuda" and layout.precision is Precision.FP32:
        raise SettingsError(
            "engines.layout.precision is 'fp32', for which Transformer Engine has no attention of "
            "packed sequences; set it to 'bf16' (the optimizer keeps fp32 weights)"
        )


def assemble(
    geometry: Geometry, config: TransformerConfig, layers: TransformerBlockSubmodules, ranks: Ranks
) -> GPTModel:
    """Make this rank's part of a model from its layers."""
    return GPTModel(
        config,
        layers,
        vocab_size=geometry.padded_vocab(config.tensor_model_parallel_size),
        max_sequence_length=geometry.positions,
        pre_process=ranks.is_first_stage,
        post_process=ranks.is_last_stage,
        parallel_output=True,
        share_embeddings_and_output_weights=geometry.tied,
        position_embedding_type="rope",
        rotary_base=geometry.rope_theta,
        rotary_percent=geometry.rotated_share,
        rope_scaling=geometry.llama3_factor > 0.0,
        rope_scaling_factor=geometry.llama3_factor or 1.0,
    )


def attention_inputs(
    parts: Sequence[int],
    device: torch.device,
    shared: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> AttentionInputs:
    """Describe the positions of sequences in a packed row of tokens [1, rows / context].

    Args:
        parts: rows of every sequence, in order and on all context ranks together, padding as a last
            sequence of its own; none is empty, each is a multiple of
            context.multiple_of(layout.context), and all packed rows a multiple of
            layout.tensor x context, because sequence parallelism divides them.
        shared: MicroBatch.attention_rows.
    """
    bounds = to_device(torch.tensor([0, *accumulate(parts)], dtype=torch.int32), device)
    packed_W, attention_M = (to_device(rows, device) for rows in shared) if shared else (None, None)
    packed = SharedSeqParams(
        qkv_format="thd",
        cu_seqlens_q=bounds,
        cu_seqlens_kv=bounds,
        max_seqlen_q=max(parts),
        max_seqlen_kv=max(parts),
        packed_W=packed_W,
        attention_M=attention_M,
    )
    return AttentionInputs(position_ids=None, attention_mask=None, packed_seq_params=packed)


def transformer_config(
    geometry: Geometry, layout: LayoutSettings, ranks: Ranks
) -> TransformerConfig:
    """Megatron's settings; what differs between CPU and GPU is kernels only."""
    dtype = DTYPES[layout.precision]
    on_gpu = ranks.device.type == FAST_DEVICE
    recompute = (
        {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
        if layout.recompute
        else {}
    )
    return TransformerConfig(
        num_layers=geometry.layers,
        hidden_size=geometry.hidden,
        num_attention_heads=geometry.heads,
        num_query_groups=geometry.groups,
        kv_channels=geometry.head_size,
        ffn_hidden_size=geometry.dense_size or geometry.expert_size,
        normalization="RMSNorm",
        layernorm_epsilon=geometry.norm_epsilon,
        qk_layernorm=geometry.qk_norm,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        add_qkv_bias=geometry.qkv_bias,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        params_dtype=dtype,
        bf16=layout.precision is Precision.BF16,
        fp16=layout.precision is Precision.FP16,
        pipeline_dtype=dtype,
        variable_seq_lengths=layout.pipeline > 1,
        tensor_model_parallel_size=layout.tensor,
        sequence_parallel=layout.tensor > 1,
        pipeline_model_parallel_size=layout.pipeline,
        context_parallel_size=layout.context,
        expert_model_parallel_size=layout.expert,
        expert_tensor_parallel_size=1,
        perform_initialization=False,
        apply_rope_fusion=on_gpu,
        bias_activation_fusion=on_gpu,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        cuda_graph_scope=[],
        calculate_per_token_loss=True,  # gradients are summed: losses come already scaled
        moe_token_dispatcher_type="alltoall",
        gradient_accumulation_fusion=False,  # Megatron's own output layer needs Apex for it
        **_moe_settings(geometry, on_gpu=on_gpu),
        **recompute,
    )


def _moe_settings(geometry: Geometry, *, on_gpu: bool) -> dict[str, object]:
    """Routers as transformers computes them; nothing in a dense model.

    Top-k of the logits and a softmax over the chosen is the softmax over all, renormalised.
    Balancing stays off: Megatron's counts the router's own choice, not the replayed one.
    """
    routing = geometry.routing
    if routing is None:
        return {}
    groups: dict[str, object] = {}
    if routing.groups > 1:
        groups = {
            "moe_router_num_groups": routing.groups,
            "moe_router_group_topk": routing.kept_groups,
        }
    if geometry.shared_size:
        groups["moe_shared_expert_intermediate_size"] = geometry.shared_size
    return groups | {
        "moe_layer_freq": [int(layer in geometry.moe_layers) for layer in range(geometry.layers)],
        "moe_shared_expert_gate": geometry.shared_gated,
        "moe_router_enable_expert_bias": routing.biased,
        # The bias is the base's: Megatron would move it by its rate in every step.
        "moe_router_bias_update_rate": 0.0,
        "moe_router_topk_scaling_factor": None if routing.scale == 1.0 else routing.scale,
        "num_moe_experts": geometry.experts,
        "moe_router_topk": geometry.top_k,
        "moe_ffn_hidden_size": geometry.expert_size,
        "moe_router_pre_softmax": routing.score == "softmax" and not routing.renormalised,
        "moe_router_score_function": routing.score,
        "moe_router_dtype": "fp32",
        "moe_router_load_balancing_type": "none",
        "moe_aux_loss_coeff": 0.0,
        # Router Replay uses router_replay.py, not Megatron's list shared by all models.
        "moe_enable_routing_replay": False,
        "moe_router_fusion": False,  # it would silently skip the replay
        "moe_grouped_gemm": on_gpu,
        "moe_permute_fusion": on_gpu,
    }


def _layers(config: TransformerConfig, ranks: Ranks) -> TransformerBlockSubmodules:
    """The layers of this stage, with attention on rows that sequences share."""
    layers = kernels(config, ranks)
    for layer in layers.layer_specs:
        layer.submodules.self_attention.module = PrefixAttention
    return layers


def kernels(config: TransformerConfig, ranks: Ranks) -> TransformerBlockSubmodules:
    """The layers of this stage: Transformer Engine on a GPU, plain torch on a CPU."""
    if ranks.device.type == FAST_DEVICE:
        if importlib.util.find_spec("transformer_engine") is None:
            raise SettingsError(
                "engines.trainer 'megatron' on a GPU needs Transformer Engine: build the "
                "environment of lock_trainer.txt and lock_transformer_engine.txt (containers/)"
            )
        return get_gpt_decoder_block_spec(config, use_transformer_engine=True)
    count = config.num_layers // config.pipeline_model_parallel_size
    first = ranks.pipeline_rank * count
    routed = config.moe_layer_freq if config.num_moe_experts else [0] * config.num_layers
    kinds = {kind: _local_layer(config, is_moe=bool(kind)) for kind in set(routed)}
    layers = [kinds[kind] for kind in routed[first : first + count]]
    return TransformerBlockSubmodules(layer_specs=layers, layer_norm=RMSNorm)


def _local_layer(config: TransformerConfig, *, is_moe: bool) -> ModuleSpec:
    """One layer of plain torch."""
    layer = get_gpt_layer_local_spec(
        num_experts=config.num_moe_experts if is_moe else None,
        moe_grouped_gemm=False,
        qk_layernorm=config.qk_layernorm,
        normalization="RMSNorm",
    )
    parts = layer.submodules
    parts.input_layernorm = parts.pre_mlp_layernorm = RMSNorm
    attention = parts.self_attention.submodules
    attention.core_attention = PackedAttention
    if config.qk_layernorm:
        attention.q_layernorm = attention.k_layernorm = RMSNorm
    return layer
