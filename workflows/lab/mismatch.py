"""How the precision of rollouts affects the trainer, with router replay off and on.

    COLUMNS=170 pyflyte run workflows/lab/mismatch.py mismatch
    COLUMNS=170 pyflyte run workflows/lab/mismatch.py mismatch --engines real --out mismatch

The first needs nothing but the embedded engines; the second vLLM and Megatron-core.
"""

from typing import Annotated

from pydantic import Field

from data_schemas.machine_settings import Positive, Seed
from tasks.lab.stages.mismatch import mismatch as measure
from tasks.platform.entry_point import entry_point


@entry_point
def mismatch(
    model_folder: str = "",
    prompts: Positive = 48,
    max_new_tokens: Positive = 64,
    seeds: Annotated[list[Seed], Field(min_length=1)] = [0, 1, 2],  # noqa: B006 - flytekit copies it
    engines: str = "embedded",
    out: str = "",
) -> list[float]:
    """Generate responses and score them with replay off, R2 and R3.

    Args:
        model_folder: Hugging Face directory of an MoE; '' for the shipped one.
        prompts: number of prompts from the sample world, four responses each.
        max_new_tokens: of a response.
        seeds: of the sampling.
        engines: 'embedded': bf16, fp16 and fp32 rollouts against the fp32 trainer; 'real': vLLM in
            bf16 and fp16 against Megatron in the same precision and in fp32, and both in fp32.
        out: folder for the table as mismatch.md and mismatch.json; '' writes none.

    Returns:
        k3 of every row of the table.
    """
    return measure(
        model_folder=model_folder,
        prompts=prompts,
        max_new_tokens=max_new_tokens,
        seeds=seeds,
        engines=engines,
        out=out,
    )
