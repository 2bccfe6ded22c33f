"""The architecture of the shipped base model: Qwen3-MoE, small enough for two CPU cores.

About 0.84 M parameters with a vocabulary of 768, about 0.4 M of them active per token.
"""

from transformers import Qwen3MoeConfig

MAX_POSITIONS = 512
EXPERTS_IMPLEMENTATION = "grouped_mm"
"""The default expert loop of transformers trains 10 to 40 times slower on CPU."""


def tiny_moe(vocabulary: int, pad_id: int, end_id: int) -> Qwen3MoeConfig:
    """Describe the tiny model; every layer is a mixture of eight experts, two per token."""
    config = Qwen3MoeConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        # Read by all three engines, though Qwen3MoeConfig does not declare it.
        head_dim=32,  # pyright: ignore[reportCallIssue]
        num_experts=8,
        num_experts_per_tok=2,
        # A multiple of 32: vLLM's CPU kernels pack expert weights in blocks of 32.
        moe_intermediate_size=64,
        norm_topk_prob=True,
        tie_word_embeddings=True,
        max_position_embeddings=MAX_POSITIONS,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        initializer_range=0.04,
        router_aux_loss_coef=0.01,
        pad_token_id=pad_id,
        bos_token_id=None,
        eos_token_id=end_id,
    )
    config._experts_implementation = EXPERTS_IMPLEMENTATION
    return config


def wider_moe(vocabulary: int, pad_id: int, end_id: int) -> Qwen3MoeConfig:
    """Describe a model with twice the layers and 32 small experts, four per token.

    As in large models, the scores of its routers are often nearly tied, which is the case
    that router replay is for.
    """
    config = tiny_moe(vocabulary, pad_id, end_id)
    config.num_hidden_layers = 6
    config.num_experts = 32
    config.num_experts_per_tok = 4
    config.moe_intermediate_size = 32
    return config
