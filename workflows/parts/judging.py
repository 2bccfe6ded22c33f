"""A judge that is fine-tuned on comparisons. Part of several workflows."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
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
def judging(
    files: list[str],
    base_model: str,
    settings: SFTSettings,
    store: StoreRef,
    execution: Execution,
) -> Judging:
    """Fine-tune a judge on comparisons.

    Args:
        files: of PandaLM or LLMBar; none for the sample world's.
        base_model: Hugging Face directory; '' for the shipped tiny MoE.
        settings: of the fine-tuning.
        store: of the run.
        execution: of the workflow.
    """
    checked = check_comparisons(settings=settings, files=files, base_model=base_model)
    base = ingest_base(path=checked.base_model, name="judge_base", store=store, execution=execution)
    collected = collect_comparisons(
        settings=checked.settings, files=files, base=base, store=store, execution=execution
    )
    tuned = sft(
        settings=collected.settings,
        parent=Parent.JUDGE,
        curated=collected.comparisons,
        base=base,
        store=store,
        execution=execution,
    )
    return Judging(
        judge=tuned.model,
        base=base,
        comparisons=collected.comparisons,
        settings=collected.settings,
    )
