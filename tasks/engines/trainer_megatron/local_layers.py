# pyright: reportMissingImports=false
"""Layers for Megatron's local spec where its own cannot do what Transformer Engine's can.

Megatron's local attention knows no packed sequences and its torch norm no sequence parallelism.

Letters: M packed rows, A attention heads and G key-value heads of this rank, D head size.
"""

import math
from itertools import pairwise

import torch
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.nn.functional import rms_norm, scaled_dot_product_attention


class RMSNorm(torch.nn.Module):
    """RMS norm in fp32, as Transformer Engine computes it."""

    def __init__(
        self, config: TransformerConfig, hidden_size: int, eps: float = 1e-6, **_: object
    ) -> None:
        super().__init__()
        self.epsilon = eps
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, dtype=config.params_dtype))
        # Every rank sees a part of the rows: finalize_model_grads adds up what is tagged.
        self.weight.sequence_parallel = config.sequence_parallel  # pyright: ignore

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis."""
        normed = rms_norm(rows.float(), rows.shape[-1:], self.weight.float(), self.epsilon)
        return normed.to(rows.dtype)


class PackedAttention(torch.nn.Module):
    """Causal attention within every packed sequence, one call each."""

    def __init__(self, config: TransformerConfig, **_: object) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(config.kv_channels or 1)

    def forward(
        self,
        query_MAD: torch.Tensor,
        key_MGD: torch.Tensor,
        value_MGD: torch.Tensor,
        attention_mask: None,
        *,
        packed_seq_params: PackedSeqParams,
        **_: object,
    ) -> torch.Tensor:
        """Attend; returns [M, A, D]."""
        bounds = packed_seq_params.cu_seqlens_q.tolist()
        lengths = [end - start for start, end in pairwise(bounds)]
        parts = [
            scaled_dot_product_attention(
                query.transpose(0, 1)[None],
                key.transpose(0, 1)[None],
                value.transpose(0, 1)[None],
                is_causal=True,
                scale=self.scale,
                enable_gqa=True,
            )[0].transpose(0, 1)
            for query, key, value in zip(
                query_MAD.split(lengths),
                key_MGD.split(lengths),
                value_MGD.split(lengths),
                strict=True,
            )
        ]
        return torch.cat(parts)
