"""Terminal output of a memory budget, and the shape of a model directory."""

import json
from pathlib import Path

from rich.table import Table

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.capacity.memory import FIXED_BYTES, GIB, Budget
from tasks.capacity.model_shape import ModelShape, shape_of
from tasks.errors import SettingsError
from tasks.models.architectures import refuse_foreign_code

HEADROOM = 0.05
"""Smallest free share of a GPU: allocators fragment, and experts are not balanced."""


def read_shape(folder: Path) -> ModelShape:
    """Read the shape of a model directory.

    Raises:
        SettingsError: there is no config.json, or it names code that is not of this project.
        DataError: the model family is not supported.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise SettingsError(
            f"{folder} is neither a preset nor a model directory: it has no config.json"
        )
    refuse_foreign_code(folder)
    return shape_of(json.loads(path.read_text()))


def describe_layout(layout: LayoutSettings, precision: Precision) -> str:
    """Describe a layout and the precision of its rollouts."""
    parts = {
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "expert": layout.expert,
        "context": layout.context,
    }
    divided = " x ".join(f"{name} {size}" for name, size in parts.items() if size > 1) or "whole"
    placement = (
        f"on {layout.dedicated_rollout_gpus} GPUs per node"
        if layout.dedicated_rollout_gpus
        else "colocated"
    )
    return (
        f"trainer {layout.precision.value}: {divided}, recompute "
        f"{'on' if layout.recompute else 'off'}, {layout.micro_batch_tokens:,} tokens per "
        f"micro-batch; rollouts {precision.value}: tensor {layout.rollout_tensor}, {placement}"
    )


def budget_table(title: str, budget: Budget) -> Table:
    """List the parts of the fullest GPU's memory, and their sums by phase."""
    table = Table(title=title, title_justify="left", title_style="", box=None)
    table.add_column("")
    table.add_column("bytes", justify="right")
    table.add_column("description", overflow="fold")
    trainer, rollout = budget.trainer, budget.rollout
    longest = rollout.cached_tokens // budget.longest
    lines = [
        ("trainer: weights", trainer.weights, f"pipeline stage {budget.stage}"),
        ("trainer: gradients", trainer.gradients, "fp32, during an update only"),
        ("trainer: optimizer", trainer.optimizer, "divided over data-parallel ranks"),
        ("trainer: reference", trainer.reference, "weights of the reference model, for KL"),
        ("trainer: activations", trainer.activations, "micro-batches in flight"),
        ("trainer: logits", trainer.logits, "one micro-batch, fp32"),
        (
            "trainer: weight sync",
            trainer.weight_sync,
            "largest tensor, or piece, and its copy",
        ),
        ("rollout: weights", rollout.weights, "one GPU of an engine"),
        (
            "rollout: working set",
            rollout.working + rollout.routes,
            "one pass, with its routes",
        ),
        (
            "rollout: cache",
            rollout.cache,
            f"{rollout.cached_tokens:,} tokens per engine, {longest} sequences of full length",
        ),
        ("rollout: weight sync", rollout.receiving, "experts of a layer, until all are there"),
        ("fixed", FIXED_BYTES, "assumed: contexts, communication, workspaces"),
        *((f"while: {name}", size, "") for name, size in budget.phases.items()),
        ("GPU", budget.gpu, describe_fit(budget)),
        ("host: routes", rollout.host_routes, "all tokens in the cache, in host memory"),
    ]
    for name, size, meaning in lines:
        if name.endswith("reference") and not size:
            continue
        style = "bold" if name.startswith(("while", "GPU")) else ""
        table.add_row(name, format_bytes(size), meaning, style=style)
    return table


def format_bytes(number: int) -> str:
    """Format bytes as MiB or GiB."""
    unit, name = (GIB, "GiB") if abs(number) >= GIB / 10 else (2**20, "MiB")
    return f"{number / unit:,.2f} {name}"


def format_count(parameters: int) -> str:
    """Format a number of parameters."""
    unit, name = (1e9, "B") if parameters >= 1e8 else (1e6, "M")
    return f"{parameters / unit:,.1f}{name}"


def describe_fit(budget: Budget) -> str:
    """Describe whether the budget fits."""
    lacking = budget.longest - budget.rollout.cached_tokens
    if lacking > 0:
        return f"does not fit: the cache lacks {lacking:,} tokens for one sequence"
    if budget.headroom < 0.0:
        return f"does not fit: exceeds the GPU by {-budget.headroom:.1%}"
    tight = "" if budget.headroom >= HEADROOM else f": too little headroom, below {HEADROOM:.0%}"
    return f"fits, {budget.headroom:.1%} free{tight}"
