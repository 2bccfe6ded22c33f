"""A device on a machine without one, that notes where the host waits for it.

Its tensors hold values in the host's memory and call themselves 'meta', a kind of device that torch
runs backward passes on without a driver. Noted is what CUDA makes the host wait for: a value that
is read, a copy that is not asynchronous, and a result whose size depends on values. CUDA's refusals
are not here; FakeTensorMode has them.
"""

import traceback
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
ATEN = torch.ops.aten
WAITING = {
    ATEN._local_scalar_dense, ATEN.equal, ATEN.is_nonzero, ATEN.nonzero, ATEN.masked_select,
    ATEN.repeat_interleave, ATEN._unique2, ATEN.bincount,
}  # fmt: skip
"""`repeat_interleave` is here the one whose repeats are a tensor."""
INDEXING = {ATEN.index, ATEN.index_put, ATEN.index_put_}


class OnDevice(torch.Tensor):
    """A tensor of the device; its values are in `host`."""

    host: torch.Tensor

    @staticmethod
    def __new__(cls, host: torch.Tensor) -> "OnDevice":
        """Hold a tensor of the host."""
        one = torch.Tensor._make_wrapper_subclass(
            cls, host.size(), strides=host.stride(), dtype=host.dtype, device=DEVICE
        )
        one.host = host
        return one

    def tolist(self) -> Any:
        """Read all values, as torch does of a tensor that is not the host's."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute outside of a watched block, without notes."""
        with ImitatedDevice():
            return func(*args, **(kwargs or {}))


class ImitatedDevice(TorchDispatchMode):
    """Computes what is asked of the device, and notes what the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        """Per wait, the innermost function of an engine or of Megatron, or 'backward'."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute with the values; the result is where CUDA would have it."""
        kwargs = kwargs or {}
        ours = [one for one in tree_leaves((args, kwargs)) if isinstance(one, OnDevice)]
        target = kwargs.get("device")
        is_placed = bool(ours) if target is None else torch.device(target) == DEVICE
        if not ours and not is_placed:
            return func(*args, **kwargs)
        if _waits(func.overloadpacket, args, kwargs, ours, is_placed=is_placed):
            self.waits.append(_asking())
        args, kwargs = tree_map(_values, (args, kwargs))
        result = func(*args, **(kwargs | ({"device": "cpu"} if target is not None else {})))
        known = {id(one.host): one for one in ours}  # in place: the same tensor again

        def placed(one: Any) -> Any:
            if not isinstance(one, torch.Tensor) or not is_placed:
                return one
            return known[id(one)] if id(one) in known else OnDevice(one)

        return tree_map(placed, result)


def move(model: nn.Module) -> None:
    """Move all tensors of a model to the device, as `model.cuda()` would."""
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            moved = nn.Parameter(OnDevice(parameter.detach()), parameter.requires_grad)
            vars(moved).update(vars(parameter))
            module.register_parameter(name, moved)
        for name, buffer in list(module.named_buffers(recurse=False)):
            module.register_buffer(name, OnDevice(buffer))
        for name, other in list(vars(module).items()):  # Megatron's rotations are no buffer
            if isinstance(other, torch.Tensor):
                setattr(module, name, OnDevice(other))


def _values(one: Any) -> Any:
    return one.host if isinstance(one, OnDevice) else one


def _waits(
    kind: Any, args: Any, kwargs: dict[str, Any], ours: list[OnDevice], *, is_placed: bool
) -> bool:
    """Whether CUDA lets the host wait until the device has computed all before."""
    if kind in WAITING:
        return True
    if kind is ATEN._to_copy:
        return bool(ours) != is_placed and not kwargs.get("non_blocking", False)
    if kind is ATEN.copy_:
        non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
        return len(ours) == 1 and not non_blocking
    if kind in INDEXING:
        places = [place for place in args[1] if place is not None]
        return any(place.dtype is torch.bool or not isinstance(place, OnDevice) for place in places)
    return False


def _asking() -> str:
    for frame, _ in traceback.walk_stack(None):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.endswith("torch/autograd/graph.py"):
            return "backward"
        if "/tasks/engines/" in file:
            return f"{Path(file).stem}.{frame.f_code.co_qualname}"
        if "/megatron/core/" in file:
            return f"megatron.{name}"
    return "elsewhere"
