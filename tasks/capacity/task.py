"""Flyte shell of the memory budget."""

from pathlib import Path

from rich.console import Console

from tasks.capacity import plan as plans
from tasks.capacity.table import HEADROOM, budget_table, describe_fit
from tasks.errors import CapacityError, SettingsError
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell


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
) -> str:
    """Print the memory of one GPU by part.

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

    Returns:
        Whether the layout fits, and the free share.

    Raises:
        SettingsError: the options are invalid.
        CapacityError: the layout does not fit.
    """
    if bool(preset) == bool(model):
        raise SettingsError("give either --preset or --model")
    start = plans.plan_of_preset(preset) if preset else plans.plan_of_model(Path(model))
    overridden = plans.override_layout(
        start, layout=layout, precision=precision, gpus=gpus, gpu_gib=gpu_gib
    )
    plan = plans.override_work(overridden, prompt, response, sequences)
    found = plan.budget()
    Console(highlight=False).print(budget_table(plan.title(), found))
    deck_of_facts(plan.name, {name: float(size) for name, size in found.phases.items()})
    if not found.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(found)}")
    return describe_fit(found)
