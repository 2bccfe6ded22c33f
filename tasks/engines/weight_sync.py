"""The trainer's side of a weight sync: hash tensors while they are sent."""

from collections.abc import Iterator, Mapping

import torch

from tasks.algorithms.digests import joint_digest, tensor_digest


class Outgoing(Iterator[tuple[str, torch.Tensor]]):
    """Iterates over named tensors and hashes each: one pass, one tensor at a time.

    Args:
        source: the trainer's weights.
    """

    def __init__(self, source: Iterator[tuple[str, torch.Tensor]]) -> None:
        self.source = source
        self._digests: dict[str, str] = {}

    def __next__(self) -> tuple[str, torch.Tensor]:
        name, tensor = next(self.source)
        self._digests[name] = tensor_digest(tensor)
        return name, tensor

    @property
    def tensor_digests(self) -> Mapping[str, str]:
        """Digest of every tensor sent so far."""
        return self._digests

    def add_digests(self, tensor_digests: Mapping[str, str]) -> None:
        """Add digests of tensors that each process sent directly to its own engine."""
        self._digests.update(tensor_digests)

    def digest(self) -> str:
        """Digest of all tensors sent so far."""
        return joint_digest(self._digests)
