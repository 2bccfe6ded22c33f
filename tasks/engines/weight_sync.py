"""Weights on their way from a trainer to a rollout engine."""

from collections.abc import Iterator, Mapping

import torch

from tasks.algorithms.digests import joint_digest, tensor_digest


class Outgoing(Iterator[tuple[str, torch.Tensor]]):
    """Named tensors, hashed as they pass: one pass over the weights, one tensor at a time.

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
        """Of every tensor that has passed."""
        return self._digests

    def passed(self, tensor_digests: Mapping[str, str]) -> None:
        """Take note of tensors that went another way: each process feeds its own engine."""
        self._digests.update(tensor_digests)

    def digest(self) -> str:
        """Digest of all that has passed."""
        return joint_digest(self._digests)
