"""Tensors in memory that several processes of this machine have: the weights, once.

A file without a name holds them: it is gone with the last process that has it, however that one
ends, and is not bounded by the small /dev/shm of a container.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping
from math import prod

import torch

ALIGNMENT = 64
"""Bytes, as torch aligns what it allocates: a product of matrices may round otherwise on others."""


class SharedTensors:
    """Memory for some tensors, by name.

    Args:
        like: has the names, shapes and types; every process gives the same, in the same order.
        file: descriptor of the memory of another process; None makes it, zeros.
        copies: tensors of each name, one copy behind the other.
    """

    def __init__(
        self, like: Mapping[str, torch.Tensor], file: int | None = None, *, copies: int = 1
    ) -> None:
        self._like = {name: (tensor.shape, tensor.dtype) for name, tensor in like.items()}
        self.nbytes = sum(_room(*one) for one in self._like.values())
        """Size of one copy."""
        size = max(ALIGNMENT, self.nbytes * copies)
        self.file = _new_file(size) if file is None else file
        """Descriptor, for another process."""
        self._memory = mmap.mmap(self.file, size)

    def tensors(self, copy: int = 0) -> dict[str, torch.Tensor]:
        """Return the tensors of a copy; each has a storage of its own, as a file has it."""
        tensors, offset = {}, copy * self.nbytes
        for name, (shape, dtype) in self._like.items():
            count = prod(shape)
            if count:
                flat = torch.frombuffer(self._memory, dtype=dtype, count=count, offset=offset)
            else:
                flat = torch.empty(0, dtype=dtype)
            tensors[name] = flat.view(shape)
            offset += _room(shape, dtype)
        return tensors

    def __del__(self) -> None:
        """Give the memory back once no process has it."""
        if hasattr(self, "file"):
            os.close(self.file)


def move_into(shared: SharedTensors, own: Mapping[str, torch.Tensor], *, fill: bool) -> None:
    """Let tensors have the memory of the shared ones; `fill` it with their values before."""
    tensors = shared.tensors()
    with torch.no_grad():
        for name, tensor in own.items():
            if fill:
                tensors[name].copy_(tensor)
            tensor.data = tensors[name]


def _room(shape: torch.Size, dtype: torch.dtype) -> int:
    return -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT


def _new_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("eachprompt")
    else:
        with tempfile.TemporaryFile() as nameless:
            file = os.dup(nameless.fileno())
    os.ftruncate(file, size)
    return file
