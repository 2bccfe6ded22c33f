"""DARE's drop: zero entries of a task vector at random and rescale the rest (arXiv 2311.03099).

An entry is dropped by a number that depends on the seed, the parent, the name of the tensor and the
index of the entry alone (Philox, a counter-based generator). So the result does not depend on the
order in which tensors are merged, nor on how a tensor is split into shards.

Differs: mergekit draws from torch's global generator, so its result depends on the order of the
tensors. It rescales by the ratio of the L1 norms before and after; the paper, and this module, by
1 / density, which keeps the expected value of every entry.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

_PER_BLOCK = 8
"""32-bit numbers of one step of Philox's counter."""


def stream_key(seed: int, parent: int, name: str) -> int:
    """Return the 128-bit key of the random numbers of one tensor of one parent."""
    # Not hash(), which differs from process to process.
    digest = hashlib.sha256(f"{seed}/{parent}/{name}".encode()).digest()
    return int.from_bytes(digest[:16], "little")


def kept_entries(key: int, density: float, start: int, stop: int) -> Tensor:
    """Draw which of the entries `start` to `stop` of a flat tensor are kept, as booleans."""
    block = start // _PER_BLOCK
    bits = np.random.Philox(key=key, counter=block)
    num_words = -(-stop // _PER_BLOCK) * 4 - block * 4
    draws = bits.random_raw(num_words).astype("<u8", copy=False).view("<u4")
    first = start - block * _PER_BLOCK
    mask = draws[first : first + stop - start] < np.uint64(round(density * 2**32))
    return torch.from_numpy(mask)


def drop(vector: Tensor, key: int, density: float, start: int = 0) -> Tensor:
    """Zero entries with probability 1 - density and divide the others by the density.

    A density of 1 returns the vector unchanged.

    Args:
        vector: a tensor, or a part of it in the order of its entries.
        start: index of its first entry in the whole tensor.
    """
    if density == 1.0:
        return vector
    mask = kept_entries(key, density, start, start + vector.numel()).view_as(vector)
    return torch.where(mask, vector / density, 0.0)
