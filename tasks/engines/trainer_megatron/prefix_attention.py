# pyright: reportMissingImports=false
"""Self-attention of packed rows in which a prefix that sequences share is one set of rows.

Projections, norms, experts and their exchange see the packed rows. Only the core of attention
sees every sequence whole, one after another: its queries, keys and values are taken from the
packed rows, and of its results, those of the first sequence that has a row are kept. So rotary
embedding and attention get the ordinary layout of packed sequences: on a GPU, Transformer Engine
is called as without a shared prefix. It has no parameters of its own.

Letters: M packed rows, W rows of the core of attention, A heads, D head size.
"""

from dataclasses import dataclass
from typing import Any

import torch
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer.attention import SelfAttention


@dataclass
class SharedSeqParams(PackedSeqParams):
    """Packed sequences, and how their rows are taken from packed rows that they share."""

    packed_W: torch.Tensor | None = None
    """int64 packed row of every row of attention; None if they are the same."""
    attention_M: torch.Tensor | None = None
    """int64 first row of attention that is a packed row."""


class PrefixAttention(SelfAttention):
    """Megatron's self-attention on packed rows that sequences share."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._packed_W: torch.Tensor | None = None
        self.core_attention.register_forward_hook(_keep_packed_rows, with_kwargs=True)

    def forward(
        self, hidden_states: torch.Tensor, *args: Any, packed_seq_params: Any, **settings: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend; hidden states are [M, 1, H]."""
        self._packed_W = packed_seq_params.packed_W
        return super().forward(
            hidden_states, *args, packed_seq_params=packed_seq_params, **settings
        )

    def get_query_key_value_tensors(self, *args: Any, **settings: Any) -> Any:
        """Queries, keys and values [W, 1, A, D] of all sequences."""
        packed = super().get_query_key_value_tensors(*args, **settings)
        if self._packed_W is None:
            return packed
        return tuple(rows.index_select(0, self._packed_W) for rows in packed)


def _keep_packed_rows(_: object, __: object, settings: dict[str, Any], output_W: torch.Tensor):
    """Select the packed rows of the result."""
    attention_M = settings["packed_seq_params"].attention_M
    return output_W if attention_M is None else output_W.index_select(0, attention_M)
