"""Flyte shell of the mismatch table."""

import logging
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from tasks.lab.study.mismatch import numerics
from tasks.lab.study.mismatch.tables import gaps_json, gaps_markdown, gaps_tables
from tasks.models.architectures import refuse_foreign_code
from tasks.models.model_folder import check_model_folder
from tasks.platform.deck import deck_of_facts
from tasks.platform.resources import ROWS, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.settings.early import require_word
from tasks.store.files import write_bytes
from tasks.training.foundation.base import shipped_base

logger = logging.getLogger(__name__)

add_stages(
    {"mismatch": Stage("lab.stages.mismatch", ROWS, "cpu", hours=WAIT, retries=2, cached=False)}
)


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
        out: folder for the table as mismatch.md and mismatch.json, of what was measured where a
            pair fails; '' writes none.

    Returns:
        k3 of every row of the table.

    Raises:
        SettingsError: the engines are unknown or not installed here.
    """
    require_word("--engines", engines, list(numerics.PAIRS))
    folder = Path(model_folder) if model_folder else shipped_base()
    refuse_foreign_code(folder)
    check_model_folder(folder)
    problems = numerics.sample_problems(0, prompts)
    gaps = numerics.gaps(folder, problems, max_new_tokens, seeds, numerics.pairs_here(engines))
    rows = show_and_write(gaps, len(problems), out)
    facts = {f"{row.rollout}, {row.trainer}, {row.replay.value}: k3": row.k3 for row in rows}
    deck_of_facts("mismatch", facts)
    return [row.k3 for row in rows]


def show_and_write(gaps: Iterable[numerics.Gap], prompts: int, out: str) -> list[numerics.Gap]:
    """Print and write rows once all are measured, or one fails: a pair that fails loses no other.

    Args:
        gaps: rows as they are measured.
        prompts: number of them, for the title.
        out: folder of the files, which stay as they are if there is no row; '' writes none.
    """
    rows: list[numerics.Gap] = []
    try:
        for row in gaps:
            logger.info("%s, %s, %s: k3 %.3g", row.rollout, row.trainer, row.replay.value, row.k3)
            rows.append(row)
    finally:
        Console(highlight=False).print(*gaps_tables(rows, prompts))
        if out and rows:
            write_bytes(Path(out) / "mismatch.md", gaps_markdown(rows).encode())
            write_bytes(Path(out) / "mismatch.json", gaps_json(rows))
    return rows
