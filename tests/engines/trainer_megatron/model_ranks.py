# pyright: reportMissingImports=false
"""What one rank of a world computes, reads and writes with a model: run by gloo_world.

Letters: M packed rows, V vocabulary."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.digests import weight_digest
from tasks.engines.trainer_megatron import convert, model, parallel, pieces
from tasks.engines.trainer_megatron.geometry import Geometry, read_geometry
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.small_models import LENGTHS, packed_tokens, row_loss


@dataclass(frozen=True, slots=True)
class Findings:
    """What one rank found of one model."""

    logits_MV: torch.Tensor | None
    """Logits of the whole vocabulary; None on ranks that hold no head."""
    exported: str
    """Digest of the export."""
    in_pieces: str
    """The same, one expert at a time."""
    held: int
    """Numbers in this rank's parameters."""


def find(folders: dict[str, Path], layout: LayoutSettings, out: Path) -> dict[str, Findings]:
    """Load, run, export and save every model on this rank."""
    ranks = parallel.initialise(layout)
    found = {}
    for name, folder in folders.items():
        geometry = read_geometry(folder)
        (chunk,) = model.build(geometry, layout, ranks, trainable=False)
        convert.load(chunk, folder, geometry, ranks)
        convert.save(chunk, geometry, ranks, source=folder, folder=out / name)
        found[name] = Findings(
            logits_MV=_logits(chunk, geometry, ranks),
            exported=weight_digest(convert.export(chunk, geometry, ranks)),
            in_pieces=weight_digest(convert.export(chunk, geometry, ranks, piece_bytes=1)),
            held=sum(parameter.numel() for parameter in chunk.parameters()),
        )
    return found


def gradients(
    folders: dict[str, Path], layout: LayoutSettings
) -> dict[str, dict[str, torch.Tensor]]:
    """Gradients of the packed loss under Hugging Face names, of every model."""
    ranks = parallel.initialise(layout)
    found = {}
    for name, folder in folders.items():
        geometry = read_geometry(folder)
        (chunk,) = model.build(geometry, layout, ranks)
        convert.load(chunk, folder, geometry, ranks)
        row = _packed_row(geometry, ranks)
        own_M = row.held[ranks.context_rank]
        real_M = torch.isin(own_M, row.real_M)
        logits_MV = chunk(row.tokens_M[own_M][None], **row.inputs)[0][real_M]
        share = len(logits_MV) / sum(LENGTHS)
        (share * row_loss(logits_MV, row.tokens_M[own_M][real_M])).backward()
        for parameter in chunk.parameters():
            distributed.all_reduce(parameter.grad, group=ranks.context_group)
            parameter.data = parameter.grad
        found[name] = dict(convert.export(chunk, geometry, ranks))
    return found


def save_in_pieces(source: Path, layout: LayoutSettings, folder: Path) -> None:
    """Save with a limit per file that only one or two tensors keep."""
    ranks = parallel.initialise(layout)
    geometry = read_geometry(source)
    (chunk,) = model.build(geometry, layout, ranks)
    convert.load(chunk, source, geometry, ranks)
    convert.save(chunk, geometry, ranks, source=source, folder=folder, shard_bytes=50_000)


def refusal_to_load(folder: Path) -> str:
    """Return the error message for a folder that does not hold the model."""
    layout = LayoutSettings()
    ranks = parallel.initialise(layout)
    geometry = read_geometry(folder)
    (chunk,) = model.build(geometry, layout, ranks)
    with pytest.raises(SettingsError) as refusal:
        convert.load(chunk, folder, geometry, ranks)
    return str(refusal.value)


@dataclass(frozen=True, slots=True)
class _PackedRow:
    """The compared sequences, padded as a layout needs it."""

    tokens_M: torch.Tensor
    """Tokens of all context ranks."""
    real_M: torch.Tensor
    """Rows that are no padding."""
    held: list[torch.Tensor]
    """Rows of every context rank."""
    inputs: model.AttentionInputs


def _packed_row(geometry: Geometry, ranks: parallel.Ranks) -> _PackedRow:
    multiple = pieces.multiple_of(ranks.context)
    lengths = [-(-length // multiple) * multiple for length in LENGTHS]
    whole = ranks.tensor * multiple
    width = -(-sum(lengths) // whole) * whole
    parts = [*lengths, width - sum(lengths)] if width > sum(lengths) else lengths
    firsts = [sum(lengths[:number]) for number in range(len(lengths))]
    real_M = torch.cat(
        [torch.arange(first, first + real) for first, real in zip(firsts, LENGTHS, strict=True)]
    )
    tokens_M = torch.zeros(width, dtype=torch.int64)
    tokens_M[real_M] = packed_tokens(geometry.vocab)[0]
    held = [pieces.held_rows(parts, ranks.context, rank) for rank in range(ranks.context)]
    return _PackedRow(tokens_M, real_M, held, model.attention_inputs(parts, ranks.device))


def _logits(
    chunk: torch.nn.Module, geometry: Geometry, ranks: parallel.Ranks
) -> torch.Tensor | None:
    """One packed row through all stages, and back from the ranks that hold its parts."""
    row = _packed_row(geometry, ranks)

    def step(_: object, stage: torch.nn.Module) -> tuple[torch.Tensor, object]:
        own_1M = row.tokens_M[row.held[ranks.context_rank]][None]
        return stage(own_1M, **row.inputs), lambda output, non_loss_data: output

    with torch.no_grad():
        outputs = get_forward_backward_func()(
            forward_step_func=step,
            data_iterator=None,
            model=[chunk],
            num_microbatches=1,
            seq_length=len(row.tokens_M),
            micro_batch_size=1,
            forward_only=True,
            collect_non_loss_data=True,
        )
    if not ranks.is_last_stage:
        return None
    logits_MV = torch.cat(_gathered(outputs[0][0], ranks.tensor_group, ranks.tensor), dim=1)
    logits_MV = torch.cat(_gathered(logits_MV, ranks.context_group, ranks.context))
    return logits_MV[torch.cat(row.held).argsort()][row.real_M, : geometry.vocab]


def _gathered(
    local: torch.Tensor, group: distributed.ProcessGroup, size: int
) -> list[torch.Tensor]:
    """The same of every rank in a group."""
    parts = [torch.empty_like(local) for _ in range(size)]
    distributed.all_gather(parts, local.contiguous(), group=group)
    return parts


def refusal_on_a_gpu(folder: Path, layout: LayoutSettings) -> str:
    """The error of a layout that a GPU cannot run."""
    ranks = replace(parallel.initialise(layout), device=torch.device("cuda"))
    with pytest.raises(SettingsError) as refused:
        model.build(read_geometry(folder), layout, ranks)
    return str(refused.value)
