"""Flyte shell of the simulated step."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tasks.capacity.budget_table import HEADROOM, budget_table, describe_fit
from tasks.capacity.plan import PlanOptions, read_plan
from tasks.errors import CapacityError
from tasks.lab.simulator.layouts import fastest_layouts, layout_table
from tasks.lab.simulator.lengths import read_source
from tasks.lab.simulator.page import render, step_table
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.simulator.variants import compare, variants
from tasks.platform.deck import deck
from tasks.platform.resources import SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell, unfold
from tasks.settings.early import require_one_shape
from tasks.store.files import write_bytes

add_stages(
    {"simulate_step": Stage("lab.stages.simulation", SMALL, "cpu", hours=WAIT, cached=False)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions(PlanOptions):
    """What the command says of a simulated step; workflows/lab/simulate.py describes it."""

    lengths: str
    column: str
    prompt_column: str
    page: str
    fastest: int


@shell("simulate_step")
@unfold
def simulate_step(options: SimulationOptions) -> str:
    """Print the memory of one GPU by part, and a simulated step of RL by policy.

    Returns:
        Whether the layout fits, and the free share.

    Raises:
        SettingsError: the options are invalid.
        DataError: the table of lengths cannot be read.
        CapacityError: the layout does not fit.
    """
    require_one_shape(options.preset, options.model)
    plan = read_plan(options)
    estimate = plan.budget()
    console = Console(highlight=False)
    console.print(budget_table(plan, estimate))
    source = read_source(
        options.lengths, options.column, options.prompt_column, plan.work.response_tokens
    )
    if options.fastest:
        best = fastest_layouts(plan, source.draw, Efficiency(), source.mean, options.fastest)
        console.print(layout_table(best))
    if not estimate.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(estimate)}")
    rows = list(compare(variants(plan), source.draw, Efficiency(), source.mean))
    console.print(step_table(rows))
    html = render(plan, rows, Efficiency(), source.description)
    deck(html.decode())
    if options.page:
        write_bytes(Path(options.page), html)
    return describe_fit(estimate)
