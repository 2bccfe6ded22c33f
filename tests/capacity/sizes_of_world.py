"""What a rank of a Megatron trainer really holds: run by trainer_megatron/gloo_world.py."""

from dataclasses import dataclass
from pathlib import Path

import torch

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron import convert, model, optimizer, parallel
from tasks.engines.trainer_megatron.geometry import read_geometry


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


def saved_by_a_layer(folders: tuple[Path, Path], layout: LayoutSettings, tokens: int) -> int:
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

        rows_1M = torch.arange(tokens)[None] % 200
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            gpt(rows_1M, **model.attention_inputs([tokens // 2, tokens // 2], tokens, ranks.device))
        totals.append(sum(size for size, _ in saved.values()))
    return totals[1] - totals[0]
