"""One digest of a model's weights, compared after a weight sync.

The digest is a hash over (name, hash of the tensor) in name order. Either side can therefore
compute it while tensors arrive in any order, with one of them in memory at a time.
"""

import hashlib
from collections.abc import Iterable, Mapping

import torch


def tensor_digest(tensor: torch.Tensor) -> str:
    """sha256 over dtype, shape and bytes."""
    flat = tensor.detach().to("cpu").contiguous()
    digest = hashlib.sha256(f"{flat.dtype}:{tuple(flat.shape)}".encode())
    # Flattened first: a 0-d tensor cannot be viewed as bytes.
    digest.update(flat.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def joint_digest(tensor_digests: Mapping[str, str]) -> str:
    """sha256 over names and tensor digests, in name order."""
    digest = hashlib.sha256()
    for name in sorted(tensor_digests):
        digest.update(f"{name}:{tensor_digests[name]}\n".encode())
    return digest.hexdigest()


def weight_digest(weights: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Digest of tensors that arrive one by one, in any order; none of them is kept."""
    return joint_digest({name: tensor_digest(tensor) for name, tensor in weights})
