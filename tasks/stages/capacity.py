"""Flyte shell of the memory budget and of the simulated step."""

from pathlib import Path

from rich.console import Console

from tasks.capacity import plan as plans
from tasks.capacity.plan import HEADROOM, budget_table, describe_fit
from tasks.capacity.simulation.layouts import fastest_layouts, layout_table
from tasks.capacity.simulation.page import compare, render, step_table, variants
from tasks.capacity.simulation.rates import Efficiency
from tasks.capacity.simulation.steps import read_source
from tasks.errors import CapacityError
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.settings.early import require_one_shape
from tasks.store.files import write_bytes


@shell("capacity")
def capacity(
    preset: str,
    model: str,
    layout: str,
    precision: str,
    gpus: int,
    gpu_gib: float,
    prompt: int,
    response: int,
    sequences: int,
    lengths: str,
    column: str,
    prompt_column: str,
    page: str,
    fastest: int,
) -> str:
    """Print the memory of one GPU by part, and a simulated step of RL by policy.

    Args:
        preset: name of a preset; '' if `model` is given.
        model: Hugging Face directory; '' if `preset` is given.
        layout: JSON of the LayoutSettings that differ.
        precision: precision of rollouts; '' keeps the preset's.
        gpus: number of GPUs of the task; 0 keeps the preset's.
        gpu_gib: memory of one GPU; 0 = that of an H100.
        prompt: tokens of the longest prompt; 0 keeps the preset's.
        response: tokens of the longest response; 0 keeps the preset's.
        sequences: responses of a step; 0 keeps the preset's.
        lengths: table of recorded lengths (CSV, JSONL, Parquet); '' = an assumed distribution.
        column: its column of lengths.
        prompt_column: its column that names the prompt; '' = it has none.
        page: HTML file to write; '' = none.
        fastest: of the layouts that fit, how many to list, the fastest first; 0 = none.

    Returns:
        Whether the layout fits, and the free share.

    Raises:
        SettingsError: the options are invalid.
        DataError: the table of lengths cannot be read.
        CapacityError: the layout does not fit.
    """
    require_one_shape(preset, model)
    start = plans.plan_of_preset(preset) if preset else plans.plan_of_model(Path(model))
    overridden = plans.override_layout(
        start, layout=layout, precision=precision, gpus=gpus, gpu_gib=gpu_gib
    )
    plan = plans.override_work(overridden, prompt, response, sequences)
    estimate = plan.budget()
    Console(highlight=False).print(budget_table(plan, estimate))
    source = read_source(lengths, column, prompt_column, plan.work.response_tokens)
    if fastest:
        best = fastest_layouts(plan, source.draw, Efficiency(), source.mean, fastest)
        Console(highlight=False).print(layout_table(best))
    if not estimate.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(estimate)}")
    rows = list(compare(variants(plan), source.draw, Efficiency(), source.mean))
    Console(highlight=False).print(step_table(rows))
    html = render(plan, rows, Efficiency(), source.description)
    deck(html.decode())
    if page:
        write_bytes(Path(page), html)
    return describe_fit(estimate)
