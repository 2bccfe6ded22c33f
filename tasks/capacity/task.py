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
    """Print the memory of one GPU part by part.

    Args:
        preset: one that names its GPUs; or '' and
        model: a Hugging Face directory.
        layout: JSON of the LayoutSettings that differ.
        precision: of rollouts; '' keeps the preset's.
        gpus: of the whole task; 0 keeps the preset's.
        gpu_gib: of one GPU; 0 = an H100's.
        prompt: tokens of the longest one; 0 keeps the preset's.
        response: tokens of the longest one; 0 keeps the preset's.
        sequences: responses of a step; 0 keeps the preset's.

    Returns:
        The verdict.

    Raises:
        SettingsError: the options are invalid.
        CapacityError: it does not fit.
    """
    if bool(preset) == bool(model):
        raise SettingsError("give either --preset or --model")
    start = plans.of_preset(preset) if preset else plans.of_model(Path(model))
    laid_out = plans.changed(start, layout=layout, precision=precision, gpus=gpus, gpu_gib=gpu_gib)
    plan = plans.with_work(laid_out, prompt, response, sequences)
    found = plan.budget()
    Console(highlight=False).print(budget_table(plan.title(), found))
    deck_of_facts(plan.name, {name: float(size) for name, size in found.phases.items()})
    if not found.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(found)}")
    return describe_fit(found)
