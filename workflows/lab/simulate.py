"""Whether a layout fits its GPUs, and how long a step of RL would take on them.

pyflyte run workflows/lab/simulate.py simulate --preset single_node --layout '{"expert": 4}'
"""

from typing import Annotated

from pydantic import Field

from data_schemas.machine_settings import Whole
from tasks.lab.stages.simulation import simulate_step
from tasks.platform.entry_point import entry_point


@entry_point
def simulate(
    preset: str = "",
    model: str = "",
    layout: str = "{}",
    precision: str = "",
    gpus: Whole = 0,
    gpu_gib: Annotated[float, Field(ge=0.0, le=4096.0)] = 0.0,
    prompt: Whole = 0,
    response: Whole = 0,
    sequences: Whole = 0,
    lengths: str = "",
    column: str = "",
    prompt_column: str = "",
    page: str = "",
    fastest: Whole = 0,
) -> str:
    """Print what one GPU holds, and a simulated step by policy; exit code 1 if it does not fit.

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
        lengths: table of recorded lengths (CSV, JSONL, Parquet), scaled so that the longest is
            the limit; '' = an assumed distribution.
        column: its column of lengths.
        prompt_column: its column that names the prompt; '' = it has none.
        page: HTML file to write.
        fastest: of the layouts that fit, how many to list, the fastest first; 0 = none.

    Returns:
        Whether it fits, and what is left.
    """
    return simulate_step(
        preset=preset,
        model=model,
        layout=layout,
        precision=precision,
        gpus=gpus,
        gpu_gib=gpu_gib,
        prompt=prompt,
        response=response,
        sequences=sequences,
        lengths=lengths,
        column=column,
        prompt_column=prompt_column,
        page=page,
        fastest=fastest,
    )
