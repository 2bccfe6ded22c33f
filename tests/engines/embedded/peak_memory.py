"""Memory of tensors, counted: what a process has in all depends on its allocator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class PeakMemory(TorchDispatchMode):
    """Counts the bytes of tensors that were made inside and still exist.

    Temporary memory inside an operation is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0
        """Bytes, after the operation that left most."""
        self.largest = 0
        """Bytes of the largest tensor."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                memory = StorageWeakRef(storage)  # kept: no other memory gets its number
                self._sizes[memory.cdata] = memory, storage.nbytes()
                self.largest = max(self.largest, storage.nbytes())
        self._sizes = {key: one for key, one in self._sizes.items() if not one[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._sizes.values()))
        return result
