"""Causal attention of packed sequences, as an attention function of transformers.

All other layers of a transformer work token by token and run on packed rows directly. Attention
gathers its sequences from the packed rows and scatters the results back. Right padding needs no
mask: attention is causal.

Letters: M packed rows, B sequences of one length class, T tokens, A attention heads, D head size.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from tasks.algorithms.packing import Packing, length_buckets
from tasks.errors import SettingsError

NAME = "eachprompt_packed"
BUCKET_TOKENS = 2048
"""Padded tokens per attention call: sequences of similar length share one."""


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Positions of the sequences in the packed rows."""

    rows: tuple[torch.Tensor, ...]
    """Per length class, packed rows int64 [B, T]; 0 on padding."""
    place_M: torch.Tensor
    """Index of every packed row's result in the flattened results of all classes."""

    def to(self, device: torch.device) -> "PackedLayout":
        """The same on another device."""
        return PackedLayout(tuple(rows.to(device) for rows in self.rows), self.place_M.to(device))


def layout(packing: Packing, lengths_N: torch.Tensor) -> PackedLayout:
    """Sort the sequences of a packing into length classes."""
    rows, place_NT, placed = [], torch.zeros_like(packing.rows_NT), 0
    for bucket in length_buckets(lengths_N.tolist(), BUCKET_TOKENS):
        longest = int(lengths_N[bucket].max())
        rows.append(packing.rows_NT[bucket, :longest])
        count = len(bucket) * longest
        place_NT[bucket, :longest] = torch.arange(placed, placed + count).view(-1, longest)
        placed += count
    return PackedLayout(tuple(rows), place_NT.flatten()[packing.cells_M])


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    packed: PackedLayout,
    **settings: object,
) -> tuple[torch.Tensor, None]:
    """Attend within every sequence. Query, key, value are [1, A, M, D]; returns [1, M, A, D].

    Raises:
        SettingsError: the model attends within a window, which is not implemented.
    """
    if settings.get("sliding_window") is not None:
        raise SettingsError(
            "training packs sequences and does not support a sliding window; "
            "use a model whose config.json has no sliding_window"
        )
    query_MAD, key_MAD, value_MAD = (x[0].transpose(0, 1) for x in (query, key, value))
    results = []
    for rows_BT in packed.rows:
        flat, shape = rows_BT.flatten(), rows_BT.shape
        query_BATD, key_BATD, value_BATD = (
            x.index_select(0, flat).unflatten(0, shape).transpose(1, 2)
            for x in (query_MAD, key_MAD, value_MAD)
        )
        result_BATD = scaled_dot_product_attention(
            query_BATD,
            key_BATD,
            value_BATD,
            is_causal=True,
            scale=scaling,
            enable_gqa=key.shape[1] != query.shape[1],
        )
        results.append(result_BATD.transpose(1, 2).flatten(0, 1))
    return torch.cat(results).index_select(0, packed.place_M)[None], None


@contextmanager
def use_packed_attention(model: PreTrainedModel) -> Iterator[None]:
    """Use packed attention in a model while the block runs; its calls take `packed`."""
    AttentionInterface.register(NAME, packed_attention)
    before = model.config._attn_implementation
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = before
