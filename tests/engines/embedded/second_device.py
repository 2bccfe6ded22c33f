"""A device "cuda:0" that is computed on the CPU: shows where tensors of two devices meet.

Inside `second_device` a tensor that is made for or moved to a GPU is an ordinary CPU tensor that is
noted as one of the GPU: its `device` says so, results of operations on it are noted too, and an
operation that CUDA would refuse, because one of its tensors is on the CPU, raises an error. As with
CUDA, indices and single numbers may be on the CPU, and `numpy()` may not be on the GPU.

Not noticed: what autograd does in a backward pass, and memory, streams and kernels of a real GPU.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
_UNCHECKED = frozenset(("copy_", "__set__", "backward", "_has_compatible_shallow_copy_type"))
_TAKES_CPU_INDICES = frozenset(
    ("__getitem__", "__setitem__", "index_put", "index_put_", "_index_put_impl_")
)


class SecondDeviceError(Exception):
    """An operation has tensors of both devices."""


class _Device(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._on_gpu: dict[int, StorageWeakRef] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given, name = dict(kwargs or {}), resolve_name(func) or func.__name__
        owner, _, last = name.rpartition(".")
        if last == "__get__" and owner.endswith((".device", ".is_cuda")):
            on_gpu = self._of(args[0]) == GPU
            return func(*args) if not on_gpu else GPU if owner.endswith(".device") else True
        if last in ("cpu", "to", "cuda") and isinstance(args[0], torch.Tensor):
            return self._move(last, args[0], args[1:], given)
        if last == "numpy" and self._of(args[0]) == GPU:
            raise SecondDeviceError("a tensor of the GPU is read as an array")
        made = given.get("device") is not None
        made_on_gpu = made and torch.device(given["device"]).type == "cuda"
        if made_on_gpu:
            del given["device"]
        given.pop("pin_memory", None)  # the driver pins memory, and there is none
        joins = not made and self._has_gpu(last, args, given)
        if last == "histc" and joins:  # CUDA counts integers too
            args = (args[0].float(), *args[1:])
        if last not in _UNCHECKED:
            self._check(name, last, args, given)
        result = func(*args, **given)
        if made_on_gpu or joins:
            self._note(result, GPU)
        return result

    def _of(self, tensor: torch.Tensor) -> torch.device:
        return GPU if StorageWeakRef(tensor.untyped_storage()).cdata in self._on_gpu else CPU

    def _note(self, result: Any, device: torch.device) -> None:
        """Note the memory of results, which views and parameters share."""
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and device.type == "cuda":
                memory = StorageWeakRef(tensor.untyped_storage())
                self._on_gpu[memory.cdata] = memory  # kept: no other memory gets its number

    def _move(
        self, name: str, tensor: torch.Tensor, args: Sequence[Any], given: dict[str, Any]
    ) -> torch.Tensor:
        """Cast a tensor, and return a copy of it if the device changes."""
        target = {"cpu": CPU, "cuda": GPU}.get(name, self._of(tensor))
        rest = []
        for argument in (*args, *given.values()):
            if isinstance(argument, torch.Tensor):
                target = self._of(argument)
                rest.append(argument.dtype)
            elif isinstance(argument, torch.device | str):
                target = torch.device(argument)
            elif isinstance(argument, torch.dtype):
                rest.append(argument)
        found = tensor.to(*rest) if rest else tensor
        if target.type == "meta":
            return found.to(target)
        if target.type != self._of(tensor).type and found is tensor:
            found = tensor.clone()
        if found is not tensor:
            self._note(found, target)
        return found

    def _check(self, name: str, last: str, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        parts = args[:1] if last in _TAKES_CPU_INDICES else [*args, *given.values()]
        tensors = [one for one in tree_leaves(parts) if isinstance(one, torch.Tensor)]
        if last in _TAKES_CPU_INDICES and self._of(args[0]) == CPU:
            tensors += [one for one in tree_leaves(args[1]) if isinstance(one, torch.Tensor)]
        if last in ("__setitem__", "index_put", "index_put_"):
            tensors += [one for one in tree_leaves(args[2:]) if isinstance(one, torch.Tensor)]
        if len({self._of(tensor) for tensor in tensors if tensor.ndim}) > 1:
            shapes = [(tuple(one.shape), self._of(one).type) for one in tensors]
            raise SecondDeviceError(f"{name}: {shapes}")

    def _has_gpu(self, last: str, args: Sequence[Any], given: Mapping[str, Any]) -> bool:
        parts = args[:1] if last in _TAKES_CPU_INDICES else [*args, *given.values()]
        return any(self._of(one) == GPU for one in tree_leaves(parts) if torch.is_tensor(one))


@contextmanager
def second_device() -> Iterator[None]:
    """Note and check the device of every tensor while the block runs."""
    with _Device():
        yield
