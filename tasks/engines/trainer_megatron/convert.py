"""Weights between a Hugging Face directory and Megatron's ranks, bit for bit.

Every rank reads only its own shards. `export` is a collective call that yields all tensors on all
ranks, one at a time (experts in pieces of a bounded size). Tensors have the training dtype: with
precision fp32 they are the master weights; with bf16 they are Megatron's compute weights, whose
fp32 copies belong to the optimizer. Routers may be in fp32 in a model in bf16.

Letters: E experts, F inner size of an expert, H hidden.
"""

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import distributed

from tasks.engines.chat import ends_of, load_tokenizer
from tasks.engines.trainer_megatron.geometry import Geometry
from tasks.engines.trainer_megatron.names import (
    ROUTER,
    ROUTER_BIAS,
    ParameterSlot,
    TensorPart,
    all_parts,
    canonical,
    embedding_slot,
    expert_parts,
    expert_slots,
    final_norm_slot,
    fuse,
    head_slot,
    layer_slots,
    split,
)
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.errors import EngineError, SettingsError
from tasks.models.architectures import read_architecture
from tasks.models.weights import copy_mtp, write_config, write_ends

INDEX = "model.safetensors.index.json"
SHARD_BYTES = 5 * 10**9
PIECE_BYTES = 256 * 2**20
"""Size of the pieces in which experts are gathered: memory of a weight sync on every rank."""


@torch.no_grad()
def load(model: torch.nn.Module, folder: Path, geometry: Geometry, ranks: Ranks) -> None:
    """Fill this rank's parameters from *.safetensors, cast to the model's dtype.

    Raises:
        SettingsError: the files lack a tensor, have one too many or one of another shape.
    """
    for module in model.modules():  # a bias of other precision chooses other experts
        bias = getattr(module, "expert_bias", None)
        if isinstance(bias, torch.Tensor):
            bias.data = bias.data.float()
    own = _parameters(model)
    with ExitStack() as stack:
        files = _Files(folder, geometry, stack)
        for slot, is_expert in _held_slots(geometry, ranks):
            rank, size = (0, 1) if is_expert else (ranks.tensor_rank, ranks.tensor)
            parts = [files.read(part, slot.divided, rank, size) for part in slot.parts]
            own.pop(slot.parameter).copy_(fuse(slot.fusion, parts, geometry.head_size))
    if own:
        raise EngineError(f"no tensor of {folder} belongs to {sorted(own)[:3]}")


def export(
    model: torch.nn.Module, geometry: Geometry, ranks: Ranks, *, piece_bytes: int = PIECE_BYTES
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the whole model under Hugging Face names, on every rank.

    A collective call: every rank takes every tensor. Some tensors are views of live weights;
    use or copy each before the next update.

    Args:
        piece_bytes: experts are gathered in pieces of this size; at least one at a time.
    """
    own = _parameters(model)
    first, last = 0, ranks.pipeline - 1
    per_stage = geometry.layers // ranks.pipeline
    yield from _export_slot(own, embedding_slot(geometry), geometry, ranks, first)
    for layer in range(geometry.layers):
        stage, place = divmod(layer, per_stage)
        for slot in layer_slots(geometry, layer, place):
            yield from _export_slot(own, slot, geometry, ranks, stage)
        if layer in geometry.moe_layers:
            yield from _export_experts(own, geometry, ranks, layer, piece_bytes)
    yield from _export_slot(own, final_norm_slot(geometry), geometry, ranks, last)
    if not geometry.tied:
        yield from _export_slot(own, head_slot(geometry), geometry, ranks, last)


def save(
    model: torch.nn.Module,
    geometry: Geometry,
    ranks: Ranks,
    *,
    source: Path,
    folder: Path,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a Hugging Face directory; a collective call, and rank 0 writes.

    Args:
        source: directory the policy came from: its config, generation settings, tokenizer.
        shard_bytes: files are cut at this size, and listed in an index if there are several.
    """
    if ranks.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
    own = _parameters(model)
    sizes = dict[str, int]()
    for part, kind in all_parts(geometry):
        size = torch.Size(part.shape).numel() * _like(own, kind).dtype.itemsize
        sizes[part.name] = sizes.get(part.name, 0) + size
    names = _shard_names(sizes, shard_bytes)
    shard: dict[str, torch.Tensor] = {}
    open_file = ""
    for name, tensor in export(model, geometry, ranks):
        # The others iterate to the end as well: every tensor is gathered by all ranks.
        if ranks.rank != 0:
            continue
        if names[name] != open_file:
            _write_shard(shard, folder / open_file)
            shard, open_file = {}, names[name]
        shard[name] = tensor.cpu().contiguous()
    if ranks.rank == 0:
        _write_shard(shard, folder / open_file)
        _write_index(names, geometry, sum(sizes.values()), folder)
        copy_mtp(source, folder)
        _copy_settings(source, folder, _like(own).dtype)
    # No rank goes on before the files are there.
    distributed.barrier()


def _parameters(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    biases = {name: one for name, one in model.named_buffers() if name.endswith(ROUTER_BIAS)}
    return {
        canonical(name): tensor.detach()
        for name, tensor in (*model.named_parameters(), *biases.items())
    }


def _held_slots(geometry: Geometry, ranks: Ranks) -> Iterator[tuple[ParameterSlot, bool]]:
    """Parameters held by this rank, and whether each is an expert's."""
    per_stage = geometry.layers // ranks.pipeline
    per_rank = geometry.experts // ranks.expert
    if ranks.is_first_stage:
        yield embedding_slot(geometry), False
    for place in range(per_stage):
        layer = ranks.pipeline_rank * per_stage + place
        for slot in layer_slots(geometry, layer, place):
            yield slot, False
        for seat in range(per_rank if layer in geometry.moe_layers else 0):
            expert = ranks.expert_rank * per_rank + seat
            for slot in expert_slots(geometry, layer, place, expert, seat):
                yield slot, True
    if ranks.is_last_stage:
        yield final_norm_slot(geometry), False
        # If tied, the head is a separate parameter only if the embedding is on another stage.
        if not geometry.tied or not ranks.is_first_stage:
            yield head_slot(geometry), False


class _Files:
    """The tensors of a folder, read slice by slice."""

    def __init__(self, folder: Path, geometry: Geometry, stack: ExitStack) -> None:
        self._folder = folder
        self._at: dict[str, safe_open] = {}
        for path in sorted(folder.glob("*.safetensors")):
            opened = stack.enter_context(safe_open(path, framework="pt"))
            self._at |= dict.fromkeys(opened.keys(), opened)
        expected = {part.name for part, _ in all_parts(geometry)}
        architecture = read_architecture(folder)
        mtp_names = {name for name in self._at if architecture.is_mtp(name)}
        there = set(self._at) - mtp_names - ({"lm_head.weight"} if geometry.tied else set())
        if wrong := sorted(expected ^ there):
            raise SettingsError(
                f"{folder} does not hold the tensors of its config.json: {len(wrong)} are "
                f"missing or unknown, the first is {wrong[0]}"
            )

    def read(self, part: TensorPart, axis: int | None, rank: int, size: int) -> torch.Tensor:
        """This rank's shard of a tensor, zeros where a vocabulary was padded."""
        view = self._at[part.name].get_slice(part.name)
        shape = (part.whole or part.shape[0], *part.shape[1:])
        if tuple(view.get_shape()) != shape:
            raise SettingsError(
                f"{part.name} of {self._folder} is {view.get_shape()}, and {list(shape)} "
                "by its config.json"
            )
        if axis is None or size == 1:
            return view[part.first : part.first + part.shape[0]]
        width = -(-part.shape[axis] // size)
        start, stop = rank * width, min((rank + 1) * width, part.shape[axis])
        if part.whole:
            return view[part.first + start : part.first + stop]
        shard = view[start:stop] if axis == 0 else view[:, start:stop]
        missing = width - (stop - start)
        if missing:
            shard = torch.cat([shard, shard.new_zeros(missing, *shard.shape[1:])])
        return shard


def _export_slot(
    own: dict[str, torch.Tensor], slot: ParameterSlot, geometry: Geometry, ranks: Ranks, stage: int
) -> Iterator[tuple[str, torch.Tensor]]:
    """Gather one parameter over the tensor ranks and broadcast its parts to all stages."""
    shards: list[torch.Tensor | None] = [None] * len(slot.parts)
    if ranks.pipeline_rank == stage:
        shards = list(split(slot.fusion, own[slot.parameter], geometry))
    wholes: list[torch.Tensor] = []
    for part, shard in zip(slot.parts, shards, strict=True):
        whole = shard
        if shard is not None and slot.divided is not None and ranks.tensor > 1:
            gathered = _gather(shard, ranks.tensor_group, slot.divided)
            whole = gathered.narrow(slot.divided, 0, part.shape[slot.divided])
        like = _like(own, slot.parameter)
        tensor = _broadcast(whole, part.shape, like, ranks.pipeline_group, stage)
        if not part.whole:
            yield part.name, tensor
            continue
        wholes.append(tensor)
    if wholes:
        yield slot.parts[0].name, torch.cat(wholes)


def _export_experts(
    own: dict[str, torch.Tensor], geometry: Geometry, ranks: Ranks, layer: int, piece_bytes: int
) -> Iterator[tuple[str, torch.Tensor]]:
    """Send a layer's experts in order, some of one rank at a time: gates and ups, then downs."""
    stage, place = divmod(layer, geometry.layers // ranks.pipeline)
    per_rank = geometry.experts // ranks.expert
    for matrix, parts in enumerate(expert_parts(geometry, layer)):
        of_one = parts[: len(parts) // geometry.experts]
        shape = (sum(part.shape[0] for part in of_one), of_one[0].shape[1])
        bytes_of_one = shape[0] * shape[1] * _like(own).dtype.itemsize
        seats = torch.arange(per_rank).split(max(1, piece_bytes // bytes_of_one))
        remaining = iter(parts)
        for owner, piece in itertools.product(range(ranks.expert), seats):
            experts = None
            if (ranks.pipeline_rank, ranks.expert_rank) == (stage, owner):
                slots = [expert_slots(geometry, layer, place, 0, int(seat)) for seat in piece]
                experts = torch.stack([own[slot[matrix].parameter] for slot in slots])
            whole = (len(piece), *shape)
            if ranks.pipeline_rank == stage:
                experts = _broadcast(experts, whole, _like(own), ranks.expert_group, owner)
            flat = _broadcast(experts, whole, _like(own), ranks.pipeline_group, stage).flatten(0, 1)
            names = list(itertools.islice(remaining, len(piece) * len(of_one)))
            tensors = flat.split([part.shape[0] for part in names])
            yield from zip((part.name for part in names), tensors, strict=True)
            del experts, flat, tensors  # before the next piece is received


def _gather(shard: torch.Tensor, group: distributed.ProcessGroup, axis: int) -> torch.Tensor:
    """All shards of a group's ranks, joined."""
    shard = shard.contiguous()
    size = distributed.get_world_size(group)
    if axis == 0:  # in place: a vocabulary is the largest tensor of a sync
        whole = shard.new_empty(size * shard.shape[0], *shard.shape[1:])
        distributed.all_gather_single(whole, shard, group=group)
        return whole
    shards = [torch.empty_like(shard) for _ in range(size)]
    distributed.all_gather(shards, shard, group=group)
    return torch.cat(shards, dim=axis)


def _broadcast(
    tensor: torch.Tensor | None,
    shape: tuple[int, ...],
    like: torch.Tensor,
    group: distributed.ProcessGroup,
    source: int,
) -> torch.Tensor:
    """The tensor of one rank of a group, on all of its ranks; they know its dtype by `like`."""
    if distributed.get_world_size(group) == 1:
        assert tensor is not None
        return tensor
    if tensor is None:
        tensor = torch.empty(shape, dtype=like.dtype, device=like.device)
    tensor = tensor.contiguous()
    distributed.broadcast(tensor, distributed.get_global_rank(group, source), group=group)
    return tensor


def _like(own: dict[str, torch.Tensor], name: str = "") -> torch.Tensor:
    """A parameter of this stage with the dtype and device of a parameter of any stage.

    All have one dtype, except that routers and their biases may have another; a stage holds
    routers, or no stage does.
    """
    kind = next((one for one in (ROUTER, ROUTER_BIAS) if name.endswith(one)), "")
    return next(
        tensor
        for own_name, tensor in own.items()
        if (own_name.endswith(kind) if kind else not own_name.endswith((ROUTER, ROUTER_BIAS)))
    )


def _shard_names(sizes: Mapping[str, int], shard_bytes: int) -> dict[str, str]:
    """File of every tensor, cut in the order of export.

    Args:
        sizes: bytes of every tensor, in that order.
    """
    shards: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if shards[-1] and filled + size > shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += size
    if len(shards) == 1:
        return dict.fromkeys(shards[0], "model.safetensors")
    return {
        name: f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        for number, shard in enumerate(shards, start=1)
        for name in shard
    }


def _write_shard(shard: dict[str, torch.Tensor], path: Path) -> None:
    if shard:
        save_file(shard, path, metadata={"format": "pt"})


def _write_index(names: dict[str, str], geometry: Geometry, total_bytes: int, folder: Path) -> None:
    """List which file holds what, if there are several."""
    if len(set(names.values())) == 1:
        return
    numbers = sum(torch.Size(part.shape).numel() for part, _ in all_parts(geometry))
    total = {"total_parameters": numbers, "total_size": total_bytes}
    index = {"metadata": total, "weight_map": dict(sorted(names.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def _copy_settings(source: Path, folder: Path, dtype: torch.dtype) -> None:
    """Copy config (with the dtype of the new files), generation settings and tokenizer."""
    write_config(source, folder, dtype)
    if (source / "generation_config.json").exists():
        shutil.copy(source / "generation_config.json", folder)
    tokenizer = load_tokenizer(source)
    tokenizer.save_pretrained(folder)
    write_ends(source, folder, ends_of(tokenizer)[0])
