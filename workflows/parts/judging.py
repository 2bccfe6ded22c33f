"""A judge that is fine-tuned on comparisons. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef
from data_schemas.rows import Parent
from data_schemas.settings import SFTSettings
from tasks.platform.shell import subworkflow
from tasks.stages.foundation import ingest_base
from tasks.stages.judges import check_comparisons, collect_comparisons
from tasks.stages.sft import sft


class Judging(NamedTuple):
    """The judge, and what it was trained from."""

    judge: CheckpointRef
    base: CheckpointRef
    comparisons: DatasetRef
    settings: SFTSettings


@subworkflow
def judging(files: list[str], base_model: str, settings: SFTSettings, context: Context) -> Judging:
    """Fine-tune a judge on comparisons.

    Args:
        files: of PandaLM or LLMBar; none for the sample world's.
        base_model: Hugging Face directory; '' for the shipped tiny MoE.
        settings: of the fine-tuning.
        context: of the run.
    """
    checked = check_comparisons(settings=settings, files=files, base_model=base_model)
    base = ingest_base(path=checked.base_model, name="judge_base", context=context)
    collected = collect_comparisons(
        settings=checked.settings, files=files, base=base, context=context
    )
    tuned = sft(
        settings=collected.settings,
        parent=Parent.JUDGE,
        curated=collected.comparisons,
        base=base,
        context=context,
    )
    return Judging(
        judge=tuned.model,
        base=base,
        comparisons=collected.comparisons,
        settings=collected.settings,
    )
