"""Random models of every family, their norms and routers far from what they start as.

Letters: M packed rows, V vocabulary.
"""

from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

SIZES = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
LENGTHS = [5, 17, 1, 9]
"""Lengths of the packed sequences that logits are compared on."""


def configs() -> dict[str, PretrainedConfig]:
    """Every branch of the converter and of the router."""
    moe = {**SIZES, **EXPERTS, "head_dim": 16}
    return {
        "moe": Qwen3MoeConfig(**moe, norm_topk_prob=True),
        "moe_tied": Qwen3MoeConfig(**moe, norm_topk_prob=True, tie_word_embeddings=True),
        "moe_not_renormalised": Qwen3MoeConfig(**moe, norm_topk_prob=False),
        "moe_odd_vocabulary": Qwen3MoeConfig(**{**moe, "vocab_size": 301}),
        "dense": Qwen3Config(**SIZES, head_dim=16),
        "dense_tied": Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=True),
        "qwen2": Qwen2Config(**SIZES, tie_word_embeddings=True),
    }


def write_model(config: PretrainedConfig, tokenizer: Path, folder: Path) -> Path:
    """Write a random model whose every tensor matters."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            else:
                parameter.normal_(std=0.5 if name.endswith("mlp.gate.weight") else 0.1)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
    return folder


def open_model(folder: Path) -> PreTrainedModel:
    """Open it with transformers, in fp32."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def packed_tokens(vocab: int) -> torch.Tensor:
    """One row of random tokens [1, M]."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, vocab, (1, sum(LENGTHS)), generator=generator)


def expected_logits(folder: Path) -> torch.Tensor:
    """What transformers says, sequence by sequence: [M, V]."""
    model = open_model(folder)
    with torch.no_grad():
        parts = packed_tokens(model.config.vocab_size).split(LENGTHS, dim=1)
        return torch.cat([model(part).logits[0] for part in parts])


def row_loss(logits_MV: torch.Tensor, tokens_M: torch.Tensor) -> torch.Tensor:
    """A loss that every row has a part in: that it predicts itself."""
    return torch.nn.functional.cross_entropy(logits_MV, tokens_M)


def packed_loss(model: PreTrainedModel) -> torch.Tensor:
    """The loss of transformers, sequence by sequence."""
    tokens_1M = packed_tokens(model.config.vocab_size)
    logits = [model(part).logits[0] for part in tokens_1M.split(LENGTHS, dim=1)]
    return row_loss(torch.cat(logits), tokens_1M[0])
