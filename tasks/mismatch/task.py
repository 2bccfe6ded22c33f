"""Flyte shell of the mismatch table."""

from pathlib import Path

from rich.console import Console

from tasks.errors import SettingsError
from tasks.mismatch import numerics
from tasks.mismatch.text import gaps_json, gaps_markdown, gaps_tables
from tasks.models.model_folder import check_model_folder
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.store.files import write_bytes
from tasks.training.foundation.base import shipped_base


@shell("mismatch")
def mismatch(
    model_folder: str,
    prompts: int,
    max_new_tokens: int,
    seeds: list[int],
    engines: str,
    out: str,
) -> list[float]:
    """Print the mismatch of rollouts in another precision with replay off, R2 and R3.

    Args:
        model_folder: Hugging Face directory of a mixture of experts; '' for the shipped one.
        prompts: of the sample world.
        max_new_tokens: of a response.
        seeds: of the sampling.
        engines: 'embedded' or 'real': vLLM against Megatron.
        out: folder for the table as mismatch.md and mismatch.json; '' writes none.

    Returns:
        k3 of every row of the table.

    Raises:
        SettingsError: the engines are unknown or not installed here.
    """
    if engines not in numerics.PAIRS:
        raise SettingsError(f"--engines {engines!r} is none of: {', '.join(numerics.PAIRS)}")
    folder = Path(model_folder) if model_folder else shipped_base()
    check_model_folder(folder)
    problems = numerics.sample_problems(0, prompts)
    pairs = numerics.PAIRS[engines]
    rows = numerics.gaps(folder, problems, max_new_tokens, seeds, pairs)
    Console(highlight=False).print(*gaps_tables(rows, len(problems)))
    if out:
        write_bytes(Path(out) / "mismatch.md", gaps_markdown(rows).encode())
        write_bytes(Path(out) / "mismatch.json", gaps_json(rows))
    facts = {f"{row.rollout}, {row.trainer}, {row.replay.value}: k3": row.k3 for row in rows}
    deck_of_facts("mismatch", facts)
    return [row.k3 for row in rows]
