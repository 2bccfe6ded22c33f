"""Send commands to other ranks: pickled, except for tensors, which are sent directly.

All processes belong to one stage, started by one agent from one image, so unpickled data comes from
the same code. No schema takes the place of pickle: a command holds code, such as a loss of a
user's own.
"""

import io
import json
import pickle
from collections.abc import Callable
from functools import partial

import torch
from torch import distributed as dist

_Carry = Callable[[torch.Tensor], object]
"""Sends a tensor, or receives into it."""


class _Packer(pickle.Pickler):
    """Leaves tensors out and collects them in order."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tensors: list[torch.Tensor] = []

    def persistent_id(self, obj: object) -> int | None:
        if not isinstance(obj, torch.Tensor):
            return None
        self.tensors.append(obj.detach().to("cpu").contiguous())
        return len(self.tensors) - 1


class _Unpacker(pickle.Unpickler):
    """Puts tensors back in their places."""

    def __init__(self, file: io.BytesIO, tensors: list[torch.Tensor]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, pid: int) -> torch.Tensor:
        return self._tensors[pid]


def broadcast(item: object, group: dist.ProcessGroup) -> None:
    """Send an object from rank 0 to all others of the group."""
    _write(item, partial(dist.broadcast, src=0, group=group))


def receive_broadcast(group: dist.ProcessGroup) -> object:
    """Wait for the next object that rank 0 sends."""
    return _read(partial(dist.broadcast, src=0, group=group))


def _write(item: object, carry: _Carry) -> None:
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(item)
    plan = [(str(tensor.dtype).partition(".")[2], list(tensor.shape)) for tensor in packer.tensors]
    for data in (json.dumps(plan).encode(), file.getvalue()):
        carry(torch.tensor([len(data)]))
        carry(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    for tensor in packer.tensors:
        _carry_tensor(tensor, carry)


def _read(carry: _Carry) -> object:
    plan, data = json.loads(_read_bytes(carry)), _read_bytes(carry)
    tensors = [torch.empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in plan]
    for tensor in tensors:
        _carry_tensor(tensor, carry)
    return _Unpacker(io.BytesIO(data), tensors).load()


def _read_bytes(carry: _Carry) -> bytes:
    size = torch.zeros(1, dtype=torch.int64)
    carry(size)
    data = torch.empty(int(size), dtype=torch.uint8)
    carry(data)
    return data.numpy().tobytes()


def _carry_tensor(tensor: torch.Tensor, carry: _Carry) -> None:
    if tensor.numel():
        carry(tensor.reshape(-1).view(torch.uint8))
