"""Send records between ranks: JSON, and their arrays and tensors one at a time, without a copy.

The records are those in _RECORDS and what they hold; a message can make nothing else. Commands,
which hold code, are in wire.py.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import distributed as dist

from data_schemas.rollouts import KeptSets, Rollout, RouterTrace, StopReason
from tasks.algorithms.kept_sets import KeptTokens
from tasks.algorithms.routing import Traces
from tasks.engines.partial_batch import Share
from tasks.engines.protocols import EngineCounters, Request, TokenBatch
from tasks.engines.recording_loss import LossCall
from tasks.engines.request_queue import Room

RECORDS = (
    *(KeptSets, KeptTokens, Rollout, RouterTrace, Traces),
    *(EngineCounters, LossCall, Request, Room, Share, TokenBatch),
)
_RECORDS: dict[str, Any] = {record.__name__: record for record in RECORDS}
_DTYPES = (
    *("bool", "uint8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
)
_Carry = Callable[[torch.Tensor], object]
"""Sends a tensor, or receives into it."""


def send(item: object, rank: int, group: dist.ProcessGroup) -> None:
    """Send a record, a tuple of them or None to one rank."""
    _write(item, partial(dist.send, dst=rank, group=group))


def recv(source: int, group: dist.ProcessGroup) -> Any:
    """Wait for the next item that a rank sends to this one.

    Raises:
        ValueError, KeyError: the message holds something else than records.
    """
    return _read(partial(dist.recv, src=source, group=group))


def broadcast(item: object, group: dist.ProcessGroup) -> None:
    """Send an item from rank 0 to all others of the group."""
    _write(item, partial(dist.broadcast, src=0, group=group))


def receive_broadcast(group: dist.ProcessGroup) -> Any:
    """Wait for the next item that rank 0 sends to all."""
    return _read(partial(dist.broadcast, src=0, group=group))


def gather(item: object, group: dist.ProcessGroup) -> list[Any]:
    """Gather an item of every rank on rank 0, in rank order; [] on every other rank."""
    if dist.get_rank(group) > 0:
        send(item, 0, group)
        return []
    return [item, *(recv(rank, group) for rank in range(1, dist.get_world_size(group)))]


def _write(item: object, carry: _Carry) -> None:
    tensors: list[torch.Tensor] = []
    plain = _plain(item, tensors)
    plan = [(str(tensor.dtype).partition(".")[2], list(tensor.shape)) for tensor in tensors]
    data = json.dumps([plan, plain]).encode()
    carry(torch.tensor([len(data)]))
    carry(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    for tensor in tensors:
        _carry_tensor(tensor.contiguous(), carry)


def _read(carry: _Carry) -> Any:
    size = torch.zeros(1, dtype=torch.int64)
    carry(size)
    data = torch.empty(int(size), dtype=torch.uint8)
    carry(data)
    plan, plain = json.loads(data.numpy().tobytes())
    tensors = [empty_tensor(name, shape) for name, shape in plan]
    for tensor in tensors:
        _carry_tensor(tensor, carry)
    return _item(plain, tensors)


def empty_tensor(dtype: str, shape: list[int]) -> torch.Tensor:
    """Make room for a tensor that is received.

    Raises:
        ValueError: no record has tensors of this dtype.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"tensors of {dtype} are not sent between ranks")
    return torch.empty(shape, dtype=getattr(torch, dtype))


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, without a copy."""
    return tensor.reshape(-1).view(torch.uint8)


def _carry_tensor(tensor: torch.Tensor, carry: _Carry) -> None:
    if tensor.numel():
        carry(flat(tensor))


def _plain(item: object, tensors: list[torch.Tensor]) -> object:
    """Say what an item is in JSON, its arrays and tensors by their places in a list."""
    match item:
        case None | str() | int() | float():
            return item
        case torch.Tensor():
            return {"tensor": _place(item.detach().cpu(), tensors)}
        case np.ndarray():  # torch takes no array that cannot be written
            writeable = item if item.flags.writeable else item.copy()
            return {"array": _place(torch.from_numpy(writeable), tensors)}
        case tuple() | list():
            return [_plain(part, tensors) for part in item]
        case Mapping():
            return {"of": "", "with": {key: _plain(part, tensors) for key, part in item.items()}}
        case _:
            return _record(item, tensors)


def _place(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> int:
    tensors.append(tensor)
    return len(tensors) - 1


def _record(item: Any, tensors: list[torch.Tensor]) -> object:
    """Say what a record is, field by field.

    Raises:
        ValueError: it is none that is sent.
    """
    name = type(item).__name__
    if _RECORDS.get(name) is not type(item):
        raise ValueError(f"{name} is not sent between ranks")
    parts = {one.name: _plain(getattr(item, one.name), tensors) for one in fields(_RECORDS[name])}
    return {"of": name, "with": parts}


def _item(plain: Any, tensors: list[torch.Tensor]) -> Any:
    """Make an item again; lists become tuples."""
    match plain:
        case {"tensor": place}:
            return tensors[place]
        case {"array": place}:
            return tensors[place].numpy()
        case {"of": name, "with": parts}:
            items = {key: _item(part, tensors) for key, part in parts.items()}
            return _build(name, items) if name else items
        case list():
            return tuple(_item(part, tensors) for part in plain)
        case _:
            return plain


def _build(name: str, parts: dict[str, Any]) -> object:
    if name == Rollout.__name__:
        parts["stop_reason"] = StopReason(parts["stop_reason"])
    return _RECORDS[name](**parts)
