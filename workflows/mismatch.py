"""What a bf16 rollout does to an fp32 trainer, with router replay off and on.

COLUMNS=160 pyflyte run workflows/mismatch.py mismatch
"""

from flytekit import workflow

from tasks.replay.task import mismatch as measure


@workflow
def mismatch(
    model_folder: str = "",
    prompts: int = 48,
    max_new_tokens: int = 64,
    seeds: list[int] = [0, 1, 2],  # noqa: B006 - flytekit copies it
) -> list[float]:
    """Answer prompts in bf16 and fp32 and score them in fp32 with replay off, R2 and R3.

    Args:
        model_folder: Hugging Face directory of a mixture of experts; '' for the shipped one.
        prompts: of the sample world, four answers each.
        max_new_tokens: of an answer.
        seeds: of the sampling.

    Returns:
        k3 of every row of the table.
    """
    return measure(
        model_folder=model_folder, prompts=prompts, max_new_tokens=max_new_tokens, seeds=seeds
    )
