"""config.json of the bases of the papers' recipes: published keys, shrunk in width.

Sources: Ling-lite-1.5 and Qwen2.5-Math-7B; of CompassMax-V3 only 16 experts, top-4 and multi-token
prediction are published.
"""

from typing import Any

LING_LITE: dict[str, Any] = {
    "architectures": ["BailingMoeForCausalLM"],
    "model_type": "bailing_moe",
    "first_k_dense_replace": 0,
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 32,
    "moe_intermediate_size": 32,
    "num_experts": 64,
    "num_shared_experts": 2,
    "norm_topk_prob": True,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 28,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 600000,
    "tie_word_embeddings": False,
    "use_bias": False,
    "use_qkv_bias": False,
    "norm_head": False,
    "vocab_size": 512,
    "eos_token_id": 1,
    "pad_token_id": 1,
    "torch_dtype": "bfloat16",
}
QWEN2_5_MATH_7B: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 56,
    "intermediate_size": 148,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 4096,
    "max_window_layers": 28,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000,
    "tie_word_embeddings": False,
    "vocab_size": 512,
    "torch_dtype": "bfloat16",
}
COMPASSMAX_V3: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_act": "silu",
    "hidden_size": 128,
    "head_dim": 16,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 128,
    "norm_topk_prob": True,
    "num_nextn_predict_layers": 1,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "vocab_size": 512,
}
