"""Flyte shell of the memory budget."""

from tasks.capacity.budget_table import HEADROOM, budget_table, describe_fit
from tasks.capacity.plan import read_plan
from tasks.errors import CapacityError
from tasks.platform.shell import shell
from tasks.platform.tables import Screen
from tasks.settings.early import require_one_shape


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
    require_one_shape(preset, model)
    plan = read_plan(preset, model, layout, precision, gpus, gpu_gib, prompt, response, sequences)
    estimate = plan.budget()
    Screen().print(budget_table(plan, estimate))
    if not estimate.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(estimate)}")
    return describe_fit(estimate)
