"""One digest of a model's weights: the handshake after a weight hand-over."""

import hashlib
from collections.abc import Iterable

import torch


def weight_digest(weights: Iterable[tuple[str, torch.Tensor]]) -> str:
    """sha256 over names, dtypes, shapes and bytes, in name order."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights, key=lambda item: item[0]):
        flat = tensor.detach().to("cpu").contiguous()
        digest.update(f"{name}:{flat.dtype}:{tuple(flat.shape)}".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
