"""What a rank of a Megatron trainer really holds: run by trainer_megatron/gloo_world.py."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron import convert, model, optimizer, parallel
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.engines.trainer_megatron.micro_batches import MicroBatch


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes on one rank; its place among the pipeline's stages."""

    stage: int
    parameters: int
    """Counted, not bytes."""
    weights: int
    """With the buffers' padding."""
    gradients: int
    moments: int
    """Two per element the optimizer owns."""
    masters: int
    """fp32 weights it owns; 0 where the model is fp32."""


def hold(folder: Path, layout: LayoutSettings) -> Held:
    """Build, take a step on zero gradients so that the optimizer has its state, and look."""
    ranks, geometry = parallel.initialise(layout), read_geometry(folder)
    gpt = model.build(geometry, layout, ranks)[0]
    convert.load(gpt, folder, geometry, ranks)
    replica = optimizer.replicate(gpt)
    stepping = optimizer.make_optimizer(gpt, replica, 0.0)
    replica.zero_grad_buffer()
    stepping.zero_grad()
    stepping.step()
    buffers = replica.buffers + replica.expert_parallel_buffers
    inner = [one.optimizer for one in getattr(stepping, "chained_optimizers", [stepping])]
    states = [(weight, state) for one in inner for weight, state in one.state.items()]
    owned = sum(weight.numel() for weight, _ in states)
    is_fp32 = next(gpt.parameters()).dtype is torch.float32
    return Held(
        stage=ranks.pipeline_rank,
        parameters=sum(weight.numel() for weight in gpt.parameters()),
        weights=sum(buffer.param_data.nbytes for buffer in buffers),
        gradients=sum(buffer.grad_data.nbytes for buffer in buffers),
        moments=sum(
            state[name].nbytes for _, state in states for name in ("exp_avg", "exp_avg_sq")
        ),
        masters=0 if is_fp32 else 4 * owned,
    )


class PeakMemory(TorchDispatchMode):
    """Bytes of the storages that are alive at once, without those of a model's weights."""

    def __init__(self, weights: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._weights = {weight.untyped_storage().data_ptr() for weight in weights}
        self._alive: list[tuple[StorageWeakRef, int]] = []
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        seen = {ref.cdata for ref, _ in self._alive}
        for tensor in tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                ref = StorageWeakRef(storage)
                if storage.data_ptr() not in self._weights and ref.cdata not in seen:
                    self._alive.append((ref, storage.nbytes()))
                    seen.add(ref.cdata)
        self._alive = [(ref, size) for ref, size in self._alive if not ref.expired()]
        self.peak = max(self.peak, sum(size for _, size in self._alive))
        return found


def sync_peak(folder: Path, layout: LayoutSettings) -> int:
    """Bytes of an export whose tensors are copied one by one, on top of the weights."""
    ranks, geometry = parallel.initialise(layout), read_geometry(folder)
    gpt = model.build(geometry, layout, ranks, trainable=False)[0]
    convert.load(gpt, folder, geometry, ranks)
    with PeakMemory(gpt.parameters()) as memory:
        for _, tensor in convert.export(gpt, geometry, ranks):
            tensor.clone()
    return memory.peak


def saved_by_a_layer(folders: tuple[Path, Path], layout: LayoutSettings, micro: MicroBatch) -> int:
    """Bytes that autograd keeps for the layer that the second model has more than the first."""
    totals = []
    for folder in folders:
        ranks, geometry = parallel.initialise(layout), read_geometry(folder)
        gpt = model.build(geometry, layout, ranks)[0]
        convert.load(gpt, folder, geometry, ranks)
        gpt.post_process = False
        weights = {weight.untyped_storage().data_ptr() for weight in gpt.parameters()}
        saved: dict[int, tuple[int, torch.Tensor]] = {}

        def keep(tensor: torch.Tensor, weights=weights, saved=saved) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                saved[storage.data_ptr()] = (storage.nbytes(), tensor)
            return tensor

        inputs = model.attention_inputs(micro.parts, ranks.device, micro.attention_rows())
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            gpt(micro.tokens_M[None], **inputs)
        totals.append(sum(size for size, _ in saved.values()))
    return totals[1] - totals[0]
