"""Flyte shell of the simulated step."""

from pathlib import Path

from rich.console import Console

from tasks.capacity.budget_table import HEADROOM, budget_table, describe_fit
from tasks.capacity.plan import read_plan
from tasks.errors import CapacityError
from tasks.lab.simulator.layouts import fastest_layouts, layout_table
from tasks.lab.simulator.lengths import read_source
from tasks.lab.simulator.page import render, step_table
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.simulator.variants import compare, variants
from tasks.platform.deck import deck
from tasks.platform.resources import SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.settings.early import require_one_shape
from tasks.store.files import write_bytes

add_stages(
    {"simulate_step": Stage("lab.stages.simulation", SMALL, "cpu", hours=WAIT, cached=False)}
)


@shell("simulate_step")
def simulate_step(
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
    plan = read_plan(preset, model, layout, precision, gpus, gpu_gib, prompt, response, sequences)
    estimate = plan.budget()
    console = Console(highlight=False)
    console.print(budget_table(plan, estimate))
    source = read_source(lengths, column, prompt_column, plan.work.response_tokens)
    if fastest:
        best = fastest_layouts(plan, source.draw, Efficiency(), source.mean, fastest)
        console.print(layout_table(best))
    if not estimate.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(estimate)}")
    rows = list(compare(variants(plan), source.draw, Efficiency(), source.mean))
    console.print(step_table(rows))
    html = render(plan, rows, Efficiency(), source.description)
    deck(html.decode())
    if page:
        write_bytes(Path(page), html)
    return describe_fit(estimate)
