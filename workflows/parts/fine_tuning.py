"""Two parents from one base, and their merge. Part of post_training."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, ReportRef, StoreRef
from data_schemas.rows import Parent
from data_schemas.settings import MergeSettings, SFTSettings
from tasks.platform.shell import subworkflow
from tasks.stages.foundation import ingest_parents
from tasks.stages.merge import merge
from tasks.stages.sft import sft


class FineTuning(NamedTuple):
    """The merged model and its parents."""

    merged: CheckpointRef
    reasoning: CheckpointRef
    commerce: CheckpointRef
    reasoning_training: ReportRef
    commerce_training: ReportRef


@subworkflow
def fine_tuning(
    settings: SFTSettings,
    merging: MergeSettings,
    curated: DatasetRef,
    base: CheckpointRef,
    store: StoreRef,
    execution: Execution,
) -> FineTuning:
    """Fine-tune the base for reasoning and for commerce, and merge the two.

    Args:
        settings: of both fine-tunings.
        merging: of the merge.
        curated: demonstrations of both parents.
        base: common ancestor.
        store: of the run.
        execution: of the workflow.
    """
    starts = ingest_parents(settings=settings, base=base, store=store, execution=execution)
    reasoning = sft(
        settings=settings,
        parent=Parent.REASONING,
        curated=curated,
        base=starts.reasoning,
        store=store,
        execution=execution,
    )
    commerce = sft(
        settings=settings,
        parent=Parent.COMMERCE,
        curated=curated,
        base=starts.commerce,
        store=store,
        execution=execution,
    )
    merged = merge(
        settings=merging,
        base=base,
        reasoning=reasoning.model,
        commerce=commerce.model,
        store=store,
        execution=execution,
    )
    return FineTuning(
        merged=merged,
        reasoning=reasoning.model,
        commerce=commerce.model,
        reasoning_training=reasoning.report,
        commerce_training=commerce.report,
    )
