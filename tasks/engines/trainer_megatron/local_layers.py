# pyright: reportMissingImports=false
"""Layers for Megatron's local spec with features that its own layers lack.

Megatron's local attention does not support packed sequences, nor its torch norm sequence
parallelism.

Letters: M packed rows, A attention heads and G key-value heads of this rank, W packed rows of
all context ranks, Q and K rows of one sequence, D head size.
"""

import math
from itertools import pairwise

import torch
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.tensor_parallel.mappings import gather_from_sequence_parallel_region
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from tasks.engines.trainer_megatron.pieces import held_rows, pieces


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
    """Causal attention within every packed sequence.

    Under context parallelism the keys and values of all ranks are gathered, without the memory
    savings of Transformer Engine's ring attention.
    """

    def __init__(
        self, config: TransformerConfig, pg_collection: ProcessGroupCollection, **_: object
    ) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(config.kv_channels or 1)
        self.group = pg_collection.cp

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
        lengths = [stop - start for start, stop in pairwise(bounds)]
        own_pieces = list(pieces(lengths, self.group.size(), self.group.rank()))
        # Split, not sliced one by one: the gradient of a slice is as large as the whole.
        keys = self._whole(key_MGD, lengths).split(lengths)
        values = self._whole(value_MGD, lengths).split(lengths)
        queries = query_MAD.split([piece.stop - piece.start for piece in own_pieces])
        parts = [
            _attend(
                query_QAD,
                keys[piece.sequence][: piece.stop - piece.first],
                values[piece.sequence][: piece.stop - piece.first],
                self.scale,
            )
            for piece, query_QAD in zip(own_pieces, queries, strict=True)
        ]
        return torch.cat(parts)

    def _whole(self, rows_MGD: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """The rows of all context ranks [W, G, D], in the order of the packed row."""
        size = self.group.size()
        if size == 1:
            return rows_MGD
        gathered = gather_from_sequence_parallel_region(
            rows_MGD, tensor_parallel_output_grad=True, group=self.group
        )
        order_W = torch.cat([held_rows(lengths, size, rank) for rank in range(size)])
        return gathered[order_W.argsort()]


def _attend(
    query_QAD: torch.Tensor, key_KGD: torch.Tensor, value_KGD: torch.Tensor, scale: float
) -> torch.Tensor:
    """Causal attention of the last Q of K rows; returns [Q, A, D]."""
    queries, keys = len(query_QAD), len(key_KGD)
    mask = None
    if queries < keys:
        mask = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    return scaled_dot_product_attention(
        query_QAD.transpose(0, 1)[None],
        key_KGD.transpose(0, 1)[None],
        value_KGD.transpose(0, 1)[None],
        attn_mask=mask,
        is_causal=mask is None,
        scale=scale,
        enable_gqa=True,
    )[0].transpose(0, 1)
