"""Tiny random models of every family, with the keys of published config.json files.

Sizes are shrunk; what decides the computation (routing, rotation, norms, biases, names) is that of
the published model. All disturb what is 0 or 1 at the start: norms, biases, routers.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from tasks.models.architectures import register_architecture

COMMON = {
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "vocab_size": 288,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SIGMOID = {
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 32,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_experts_per_tok": 4,
    "num_nextn_predict_layers": 1,
    "routed_scaling_factor": 2.5,
}
BAILING = {
    "architectures": ["BailingMoeForCausalLM"],
    "model_type": "bailing_moe",
    "embedding_dropout": 0.0,
    "first_k_dense_replace": 0,
    "intermediate_size": 32,
    "moe_intermediate_size": 32,
    "norm_head": False,
    "norm_topk_prob": True,
    "num_experts": 16,
    "num_experts_per_tok": 6,
    "num_shared_experts": 2,
    "output_dropout": 0.0,
    "rope_scaling": None,
    "rope_theta": 600000,
    "torch_dtype": "float32",
    "use_bias": False,
    "use_qkv_bias": False,
}
CONFIGS: dict[str, dict[str, Any]] = {
    # SmolLM2: the class of Llama, tied.
    "llama": {"model_type": "llama", "tie_word_embeddings": True, "rope_theta": 100000.0},
    "llama3": {"model_type": "llama", "rope_theta": 500000.0, "rope_scaling": LLAMA3},
    "mixtral": {
        "model_type": "mixtral",
        "intermediate_size": 32,
        "num_experts_per_tok": 2,
        "num_local_experts": 8,
        "rope_theta": 1e6,
        "sliding_window": None,
    },
    "qwen2_moe": {
        "model_type": "qwen2_moe",
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 32,
        "norm_topk_prob": False,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "shared_expert_intermediate_size": 64,
        "use_sliding_window": False,
    },
    "qwen3_moe mixed": {
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "mlp_only_layers": [1],
        "moe_intermediate_size": 32,
        "norm_topk_prob": True,
        "num_experts": 8,
        "num_experts_per_tok": 2,
    },
    "glm4_moe": {
        "model_type": "glm4_moe",
        "attention_bias": True,
        "head_dim": 16,
        "n_group": 1,
        "partial_rotary_factor": 0.5,
        "topk_group": 1,
        "use_qk_norm": True,
        **SIGMOID,
        "routed_scaling_factor": 1.0,
    },
    # DeepSeek-V3's routing without its attention.
    "glm4_moe grouped": {
        "model_type": "glm4_moe",
        "attention_bias": False,
        "head_dim": 16,
        "n_group": 4,
        "partial_rotary_factor": 1.0,
        "topk_group": 2,
        "use_qk_norm": False,
        **SIGMOID,
    },
    "ling lite": BAILING,
    "ling mini 2": {
        **BAILING,
        "architectures": ["BailingMoeV2ForCausalLM"],
        "first_k_dense_replace": 1,
        "head_dim": 16,
        "intermediate_size": 96,
        "moe_router_enable_expert_bias": True,
        "n_group": 4,
        "num_experts_per_tok": 4,
        "num_nextn_predict_layers": 1,
        "num_shared_experts": 1,
        "partial_rotary_factor": 0.5,
        "routed_scaling_factor": 2.5,
        "router_dtype": "fp32",
        "score_function": "sigmoid",
        "topk_group": 2,
        "use_qk_norm": True,
        "use_rmsnorm": True,
    },
    "deepseek_v3": {
        "model_type": "deepseek_v3",
        "kv_lora_rank": 16,
        "n_group": 4,
        "num_key_value_heads": 4,
        "q_lora_rank": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "rope_interleave": True,
        "scoring_func": "sigmoid",
        "topk_group": 2,
        "topk_method": "noaux_tc",
        "v_head_dim": 16,
        **SIGMOID,
    },
}
ROUTED = tuple(name for name in CONFIGS if name not in ("llama", "llama3"))
BIASED = ("glm4_moe", "glm4_moe grouped", "ling mini 2", "deepseek_v3")


def write_family(name: str, tokenizer: Path, folder: Path, **changes: object) -> Path:
    """Write a model directory of a family, its config.json as published ones are written.

    Args:
        name: of the family.
        tokenizer: folder with a tokenizer of at most 288 tokens.
        folder: receives the model.
        changes: of config.json.
    """
    return write_model(COMMON | CONFIGS[name] | changes, tokenizer, folder)


def write_model(published: Mapping[str, Any], tokenizer: Path, folder: Path) -> Path:
    """Write a random model directory with the keys of a config.json, in its dtype.

    Args:
        published: config.json; its ends are replaced by those of the tokenizer.
        tokenizer: folder of a model with as many tokens, or fewer.
        folder: receives the model.
    """
    shutil.copytree(tokenizer, folder, dirs_exist_ok=True)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    base = json.loads((tokenizer / "config.json").read_text())
    ends = {key: base[key] for key in ("eos_token_id", "pad_token_id")}
    config = {**published, **ends}
    written = json.dumps(config, indent=2, sort_keys=True)
    (folder / "config.json").write_text(written)
    register_architecture(folder)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    model = model.float()
    with torch.no_grad():
        for own, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            else:
                parameter.normal_(std=0.5 if own.endswith("gate.weight") else 0.1)
        for own, buffer in model.named_buffers():
            if own.endswith("e_score_correction_bias"):
                buffer.copy_(0.1 * torch.randn_like(buffer))
    model.to(getattr(torch, config.get("torch_dtype", "float32"))).save_pretrained(folder)
    (folder / "config.json").write_text(written)
    return folder


def add_mtp_layer(folder: Path) -> None:
    """Write a layer of multi-token prediction behind the last, as published files have it."""
    layers = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
    file = folder / "model.safetensors"
    weights = load_file(file)
    last = f"model.layers.{layers - 1}."
    extra = {
        name.replace(last, f"model.layers.{layers}."): value.clone()
        for name, value in weights.items()
        if name.startswith(last)
    }
    width = weights["model.norm.weight"].shape[0]
    extra[f"model.layers.{layers}.eh_proj.weight"] = torch.full((width, 2 * width), 0.1)
    save_file(weights | extra, file, metadata={"format": "pt"})
