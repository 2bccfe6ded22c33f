"""Whether a layout fits its GPUs.

pyflyte run workflows/capacity.py capacity --preset single_node --layout '{"expert": 4}'
"""

from typing import Annotated

from pydantic import Field

from data_schemas.machine_settings import Whole
from tasks.platform.entry_point import entry_point
from tasks.stages.capacity import capacity as measure


@entry_point
def capacity(
    preset: str = "",
    model: str = "",
    layout: str = "{}",
    precision: str = "",
    gpus: Whole = 0,
    gpu_gib: Annotated[float, Field(ge=0.0, le=4096.0)] = 0.0,
    prompt: Whole = 0,
    response: Whole = 0,
    sequences: Whole = 0,
) -> str:
    """Print what one GPU holds; exit code 1 if the layout does not fit.

    A preset sets layout, lengths and batch; a model directory starts from the
    defaults, on one GPU. Nothing is loaded: only config.json is read.

    Args:
        preset: full_scale, single_node or compass_thinker.
        model: Hugging Face directory, instead of a preset.
        layout: JSON of the layout's settings that differ.
        precision: of rollouts: fp32, bf16 or fp8; '' = the preset's.
        gpus: of the whole task; 0 = the preset's.
        gpu_gib: of one GPU; 0 = an H100's 79.
        prompt: tokens of the longest prompt; 0 = the preset's.
        response: tokens of the longest response; 0 = the preset's.
        sequences: responses of a step; 0 = the preset's.

    Returns:
        Whether it fits, and what is left.
    """
    return measure(
        preset=preset,
        model=model,
        layout=layout,
        precision=precision,
        gpus=gpus,
        gpu_gib=gpu_gib,
        prompt=prompt,
        response=response,
        sequences=sequences,
    )
