"""Terminal output of a memory budget, and the shape of a model directory."""

from rich.table import Table

from tasks.capacity.memory import (
    FIXED_BYTES,
    GIB,
    MemoryBudget,
)
from tasks.capacity.plan import Plan

HEADROOM = 0.05
"""Smallest free share of a GPU: allocators fragment, and experts are not balanced."""


def budget_table(plan: "Plan", budget: MemoryBudget) -> Table:
    """List the parts of the fullest GPU's memory, their sums by phase, and the disk of states."""
    table = Table(title=plan.title(), title_justify="left", title_style="", box=None)
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
        ("disk: states", plan.states_on_disk, "two are kept while another is written"),
        (
            "disk: rollouts",
            plan.rollouts_on_disk,
            "a step's, at most, until it is committed: as they end, and as a whole",
        ),
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


def describe_fit(budget: MemoryBudget) -> str:
    """Describe whether the budget fits."""
    lacking = budget.longest - budget.rollout.cached_tokens
    if lacking > 0:
        return f"does not fit: the cache lacks {lacking:,} tokens for one sequence"
    if budget.headroom < 0.0:
        return f"does not fit: exceeds the GPU by {-budget.headroom:.1%}"
    tight = "" if budget.headroom >= HEADROOM else f": too little headroom, below {HEADROOM:.0%}"
    return f"fits, {budget.headroom:.1%} free{tight}"
